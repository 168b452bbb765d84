/** A whole list, as the operators' routes answer it; nothing comes after it. */
export interface WholeList<Item> {
  readonly object: 'list';
  readonly data: readonly Item[];
  readonly has_more: false;
  readonly next: null;
}

/** A list that is short enough to be answered whole. */
export function wholeList<Item>(data: readonly Item[]): WholeList<Item> {
  return { object: 'list', data, has_more: false, next: null };
}
