import { rawJsonOf } from '../http/body/parse-json.ts';

/** JSON text of an object; of a large one its bytes (UTF-8): it goes into a blob, and nobody makes it a string before. */
export type RequestText = string | Uint8Array<ArrayBuffer>;

/** Serializes a request; long fields that are as their caller wrote them are copied, not serialized again. */
export function requestText(request: object): RequestText {
  const long = new Map<string, Uint8Array>();
  for (const [key, value] of Object.entries(request)) {
    const raw = rawJsonOf(value);
    if (raw !== undefined) long.set(key, raw);
  }
  if (long.size === 0) return JSON.stringify(request);
  const fields = Object.entries(request).filter(([, value]) => value !== undefined);
  const parts = fields.flatMap(([key, value], index): Uint8Array[] => {
    const before = `${index === 0 ? '{' : ','}${JSON.stringify(key)}:`;
    const raw = long.get(key);
    return raw === undefined ? [Buffer.from(before + JSON.stringify(value))] : [Buffer.from(before), raw];
  });
  return joined([...parts, Buffer.from('}')]);
}

/** In a buffer of its own, which can be transferred to another thread. */
function joined(parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(parts.reduce((length, part) => length + part.byteLength, 0));
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.byteLength;
  }
  return bytes;
}

/** The same as a string. */
export function textOf(request: RequestText): string {
  return typeof request === 'string'
    ? request
    : Buffer.from(request.buffer, request.byteOffset, request.length).toString();
}

const encoder = new TextEncoder();

/** The same as bytes. */
export function bytesOf(request: RequestText): Uint8Array<ArrayBuffer> {
  return typeof request === 'string' ? encoder.encode(request) : request;
}
