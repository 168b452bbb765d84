/** Groups items by key, in order (Map.groupBy, which Node 20 lacks). */
export function groupBy<Key, Item>(items: readonly Item[], keyOf: (item: Item) => Key): Map<Key, Item[]> {
  const groups = new Map<Key, Item[]>();
  for (const item of items) {
    const key = keyOf(item);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [item]);
    else group.push(item);
  }
  return groups;
}

/** Parts of a list, in order, each of at most `most` items. */
export function chunksOf<Item>(items: readonly Item[], most: number): Item[][] {
  const chunks: Item[][] = [];
  for (let start = 0; start < items.length; start += most) chunks.push(items.slice(start, start + most));
  return chunks;
}
