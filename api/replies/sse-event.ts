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

/** Reads an event, without its `id:` line and end, as views write it. The inverse of `sseEvent`, with null for an event without a name. */
export function readSseEvent(event: string): { readonly name: string | null; readonly data: string } {
  let name: string | null = null;
  const data: string[] = [];
  for (const line of event.split('\n')) {
    if (line.startsWith('data: ')) data.push(line.slice('data: '.length));
    else if (line.startsWith('event: ')) name = line.slice('event: '.length);
  }
  return { name, data: data.join('\n') };
}
