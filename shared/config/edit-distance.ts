/**
 * The edit distance (Levenshtein) of two texts, or `max + 1` for any larger distance. Its cost grows with the length and `max`: what is not
 * within `max` of the table's diagonal is more than it, and is left out. A request may be compared with thousands of names.
 */
export function editDistance(a: string, b: string, max: number): number {
  const far = max + 1;
  if (Math.abs(a.length - b.length) > max) return far;
  let previous = new Uint16Array(b.length + 2);
  for (let column = 0; column < previous.length; column++) previous[column] = Math.min(column, far);
  let current = new Uint16Array(b.length + 2);
  for (let row = 1; row <= a.length; row++) {
    const first = Math.max(1, row - max);
    const last = Math.min(b.length, row + max);
    let left = first === 1 ? Math.min(row, far) : far;
    let least = left;
    current[first - 1] = left;
    for (let column = first; column <= last; column++) {
      const isSame = a.charCodeAt(row - 1) === b.charCodeAt(column - 1);
      const substituted = (previous[column - 1] as number) + (isSame ? 0 : 1);
      left = Math.min(substituted, (previous[column] as number) + 1, left + 1);
      current[column] = left;
      least = Math.min(least, left);
    }
    if (least > max) return far;
    current[last + 1] = far;
    [previous, current] = [current, previous];
  }
  return Math.min(previous[b.length] as number, far);
}
