/** What no name of an event holds: a line break would begin a line of the stream, which the name's maker could then write. */
const outsideNames = /[^\w.-]+/g;

/**
 * An event with a name, without its `id:` line and end. The one place that writes `event:` lines: names that come from
 * elsewhere stay names.
 * @param data JSON text, of one line
 */
export function sseEvent(name: string, data: string): string {
  return `event: ${name.replace(outsideNames, '_')}\ndata: ${data}`;
}
