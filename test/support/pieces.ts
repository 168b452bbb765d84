/** A text in pieces, cut anywhere. */
export const pieces = (whole: string, at: readonly number[]): string[] => {
  const ends = [...new Set(at.map((place) => place % (whole.length + 1)))].sort((a, b) => a - b);
  return [...ends, whole.length].map((end, index) => whole.slice(ends[index - 1] ?? 0, end));
};
