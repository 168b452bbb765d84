/** A vector's JSON text, which some vendors indent down to each number, in one line. */
export function withoutSpace(vector: string): string {
  return /\s/.test(vector) ? vector.replace(/\s+/g, '') : vector;
}

/**
 * The JSON text of a vector in base64, as OpenAI writes it: little-endian floats of 32 bits.
 * @param vector JSON text of numbers; any other is what it becomes already.
 */
export function vectorToBase64(vector: string): string {
  if (!vector.startsWith('[')) return vector;
  const numbers = JSON.parse(vector) as number[];
  const bytes = Buffer.alloc(numbers.length * 4);
  for (const [index, number] of numbers.entries()) bytes.writeFloatLE(number, index * 4);
  return `"${bytes.toString('base64')}"`;
}
