/** Lengths of the character runs that count as features, in addition to whole words. */
const runLengths = [3, 4, 5];
/** A shared word is stronger evidence than a shared run of characters. */
const wordWeight = 4;

/**
 * A text as a vector of length 1: its words and runs of 3 to 5 characters, hashed to dimensions and signs, so that texts that
 * share many of them point in the same direction.
 */
export function embedText(text: string, dimensions: number): Float32Array<ArrayBuffer> {
  const sums = new Float64Array(dimensions);
  const add = (feature: string, weight: number): void => {
    const hash = hashOf(feature);
    const index = hash % dimensions;
    sums[index] = (sums[index] as number) + (hash & 0x8000_0000 ? -weight : weight);
  };
  const normal = text.normalize('NFKC').toLowerCase();
  for (const word of normal.match(/[\p{L}\p{N}]+/gu) ?? []) {
    add(word, wordWeight);
    // Word boundaries are part of it: "art" does not occur in "cart" as it does in "artist".
    const bounded = `<${word}>`;
    for (const length of runLengths) {
      for (let start = 0; start + length <= bounded.length; start += 1) add(bounded.slice(start, start + length), 1);
    }
  }
  const length = Math.sqrt(sums.reduce((sum, value) => sum + value * value, 0));
  // Without words, or if features cancel each other out, the text as a whole is the only feature.
  if (length === 0) return unitVector(hashOf(normal) % dimensions, dimensions);
  return Float32Array.from(sums, (value) => value / length);
}

function unitVector(index: number, dimensions: number): Float32Array<ArrayBuffer> {
  const vector = new Float32Array(dimensions);
  vector[index] = 1;
  return vector;
}

/** FNV-1a, its bits mixed once more (the last step of MurmurHash3): 32 bits of equal quality. */
function hashOf(feature: string): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < feature.length; index += 1) {
    hash = Math.imul(hash ^ feature.charCodeAt(index), 0x01000193);
  }
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}
