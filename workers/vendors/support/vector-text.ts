/** A vector's JSON text on one line; some vendors indent it down to each number. */
export function withoutSpace(vector: string): string {
  return /\s/.test(vector) ? vector.replace(/\s+/g, '') : vector;
}

/**
 * The JSON text of a vector in base64, in OpenAI's format: little-endian floats of 32 bits.
 * @param vector JSON text of numbers; anything else is returned unchanged.
 */
export function vectorToBase64(vector: string | Buffer): string | Buffer {
  if (typeof vector !== 'string' || !vector.startsWith('[')) return vector;
  const numbers = JSON.parse(vector) as number[];
  const bytes = Buffer.alloc(numbers.length * 4);
  for (const [index, number] of numbers.entries()) bytes.writeFloatLE(number, index * 4);
  return `"${bytes.toString('base64')}"`;
}
