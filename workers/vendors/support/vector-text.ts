/** A vector's JSON text on one line; some vendors indent it down to each number. */
export function withoutSpace(vector: string): string {
  return /\s/.test(vector) ? vector.replace(/\s+/g, '') : vector;
}

/**
 * The JSON text of a vector in base64, in OpenAI's format: little-endian floats of 32 bits.
 * @param vector JSON of numbers, as text or in UTF-8; anything else is returned unchanged.
 */
export function vectorToBase64(vector: string | Buffer): string | Buffer {
  if (vector.indexOf('[') !== 0) return vector;
  const numbers = JSON.parse(vector.toString()) as number[];
  const bytes = Buffer.alloc(numbers.length * 4);
  for (const [index, number] of numbers.entries()) bytes.writeFloatLE(number, index * 4);
  return `"${bytes.toString('base64')}"`;
}
