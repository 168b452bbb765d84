/** Characters that event names must not contain: a line break would let the name's author write lines of the stream. */
const outsideNames = /[^\w.-]+/g;

/**
 * Formats a named event, without its `id:` line and end. The only code that writes `event:` lines, so that names from
 * elsewhere cannot break out of theirs.
 * @param data JSON text, of one line
 */
export function sseEvent(name: string, data: string): string {
  return `event: ${name.replace(outsideNames, '_')}\ndata: ${data}`;
}
