/** One event of a stream as it stood on the wire. */
export interface WireEvent {
  readonly id: string | undefined;
  /** Its name; undefined where it has none. */
  readonly event?: string;
  readonly data: string;
}

/** The events of a whole stream; comments are left out. @throws Error for a line that is neither, or an event cut off. */
export function sseEvents(text: string): WireEvent[] {
  const blocks = text.split('\n\n');
  if (blocks.pop() !== '') throw new Error('the stream ends inside an event');
  return blocks.filter((block) => !block.startsWith(':')).map(readEvent);
}

function readEvent(block: string): WireEvent {
  let id: string | undefined;
  let event: string | undefined;
  const data: string[] = [];
  for (const line of block.split('\n')) {
    if (line.startsWith('id: ')) id = line.slice(4);
    else if (line.startsWith('event: ')) event = line.slice(7);
    else if (line.startsWith('data: ')) data.push(line.slice(6));
    else throw new Error(`not a line of an event: ${line}`);
  }
  return { id, ...(event !== undefined && { event }), data: data.join('\n') };
}

/** The text that the chunks of a stream say, of the first choice. */
export function textOf(events: readonly WireEvent[]): string {
  return events
    .filter(({ data }) => data !== '[DONE]')
    .map(({ data }) => JSON.parse(data).choices?.[0]?.delta?.content ?? '')
    .join('');
}

/** Reads a streamed answer event by event, as they come. */
export async function* readSse(response: Response): AsyncGenerator<WireEvent> {
  const decoder = new TextDecoder();
  let rest = '';
  for await (const bytes of response.body as unknown as AsyncIterable<Uint8Array>) {
    rest += decoder.decode(bytes, { stream: true });
    const end = rest.lastIndexOf('\n\n');
    if (end < 0) continue;
    yield* sseEvents(rest.slice(0, end + 2));
    rest = rest.slice(end + 2);
  }
  if (rest !== '') throw new Error('the stream ends inside an event');
}
