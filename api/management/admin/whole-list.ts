/** A complete list in the format of the operators' routes; there is no next page. */
export interface WholeList<Item> {
  readonly object: 'list';
  readonly data: readonly Item[];
  readonly has_more: false;
  readonly next: null;
}

/** Makes a list that is short enough for one page. */
export function wholeList<Item>(data: readonly Item[]): WholeList<Item> {
  return { object: 'list', data, has_more: false, next: null };
}
