/** A job's request: JSON text, or of a large one its bytes (UTF-8) as they were stored, which most calls pass on unread. */
export type RequestBody = string | Buffer;

/** Its text, for adapters that read it. Of bytes it is made anew each time. */
export function requestText(request: RequestBody): string {
  return typeof request === 'string' ? request : request.toString();
}
