/** A text in pieces, cut anywhere. */
export const pieces = (whole: string, at: readonly number[]): string[] => {
  const ends = [...new Set(at.map((place) => place % (whole.length + 1)))].sort((a, b) => a - b);
  return [...ends, whole.length].map((end, index) => whole.slice(ends[index - 1] ?? 0, end));
};

/** A text in pieces of as many characters. */
export function piecesOf(whole: string, size: number): string[] {
  const characters = [...whole];
  return Array.from({ length: Math.ceil(characters.length / size) }, (_, index) =>
    characters.slice(index * size, (index + 1) * size).join(''),
  );
}
