/** Lengths of the runs of characters that count as features, beside whole words. */
const runLengths = [3, 4, 5];
/** A shared word says more than a shared run of characters. */
const wordWeight = 4;

/**
 * A text as a vector of length 1: its words and runs of 3 to 5 characters, hashed to dimensions and signs, so that texts
 * that share many of them point the same way.
 */
export function embedText(text: string, dimensions: number): Float32Array<ArrayBuffer> {
  const sums = new Float64Array(dimensions);
  const add = (feature: string, weight: number): void => {
    const hash = hashOf(feature);
    const place = hash % dimensions;
    sums[place] = (sums[place] as number) + (hash & 0x8000_0000 ? -weight : weight);
  };
  const normal = text.normalize('NFKC').toLowerCase();
  for (const word of normal.match(/[\p{L}\p{N}]+/gu) ?? []) {
    add(word, wordWeight);
    // Its ends are part of it: "art" is not in "cart" the way it is in "artist".
    const bounded = `<${word}>`;
    for (const length of runLengths) {
      for (let start = 0; start + length <= bounded.length; start += 1) add(bounded.slice(start, start + length), 1);
    }
  }
  const length = Math.sqrt(sums.reduce((sum, value) => sum + value * value, 0));
  // Without a word, or with features that cancel each other out, the text as a whole is the one feature.
  if (length === 0) return unitVector(hashOf(normal) % dimensions, dimensions);
  return Float32Array.from(sums, (value) => value / length);
}

function unitVector(place: number, dimensions: number): Float32Array<ArrayBuffer> {
  const vector = new Float32Array(dimensions);
  vector[place] = 1;
  return vector;
}

/** FNV-1a, its bits mixed once more (the last step of MurmurHash3): 32 bits, each of them as good as any other. */
function hashOf(feature: string): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < feature.length; index += 1) {
    hash = Math.imul(hash ^ feature.charCodeAt(index), 0x01000193);
  }
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}
