/** A job's request: JSON text, or of a large one its bytes (UTF-8) as they were stored, which most calls pass on unread. */
export type RequestBody = string | Buffer;

/** Its text, for adapters that read it. Of bytes it is made anew each time. */
export function requestText(request: RequestBody): string {
  return typeof request === 'string' ? request : request.toString();
}

/**
 * Whether a chat asks for one call of a tool at a time. Of the several that a vendor makes that cannot be told, the first is passed on;
 * it makes the next once that has its result.
 */
export function wantsOneCall(request: RequestBody): boolean {
  if (!request.includes('"parallel_tool_calls"')) return false;
  return (JSON.parse(requestText(request)) as { parallel_tool_calls?: unknown }).parallel_tool_calls === false;
}
