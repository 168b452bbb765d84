/** JSON text in UTF-8. Its parts are written one after the other: joined they would be copied. */
export interface RequestBytes {
  readonly parts: readonly Uint8Array[];
  /** Bytes of all parts. */
  readonly length: number;
}

/** JSON text of an object; of a large one its bytes: they go into a blob, and nobody makes them a string before. */
export type RequestText = string | RequestBytes;

/** Bytes of JSON text as a request. */
export function requestBytes(parts: readonly Uint8Array[]): RequestBytes {
  return { parts, length: parts.reduce((length, part) => length + part.byteLength, 0) };
}

/** Adds fields before those of a request, which is not parsed for that. */
export function withFields(request: RequestBytes, fields: object): RequestBytes {
  const [first, ...rest] = request.parts;
  if (first === undefined || Object.keys(fields).length === 0) return request;
  return requestBytes([Buffer.from(`${JSON.stringify(fields).slice(0, -1)},`), first.subarray(1), ...rest]);
}

/** The same as a string. */
export function textOf(request: RequestText): string {
  return typeof request === 'string' ? request : Buffer.concat(request.parts, request.length).toString();
}

const encoder = new TextEncoder();

/** The same in a buffer of its own, which can be transferred to another thread. */
export function bytesOf(request: RequestText): Uint8Array<ArrayBuffer> {
  if (typeof request === 'string') return encoder.encode(request);
  const bytes = new Uint8Array(request.length);
  let at = 0;
  for (const part of request.parts) {
    bytes.set(part, at);
    at += part.byteLength;
  }
  return bytes;
}
