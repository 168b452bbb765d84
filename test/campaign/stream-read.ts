import type { Exchange } from './exchange.ts';

/** What one connection has shown of a stream. */
export interface StreamRead {
  readonly text: string;
  /** Id of the last event. */
  readonly lastId: string | undefined;
  /** Undefined: the stream broke off, or has ended without saying how. */
  readonly end: 'done' | 'error' | undefined;
  /** Of an error. */
  readonly code: string | undefined;
  /** Events that came after its end. */
  readonly afterEnd: number;
  readonly isWhole: boolean;
  readonly hasLeft: boolean;
  /** Whether the error is in the API's shape. */
  readonly isShaped: boolean;
}

/** Reads the events of an answer, as far as they came whole. */
export function readStream({ bytes, isWhole, hasLeft }: Exchange): StreamRead {
  const blocks = bytes.toString().split('\n\n');
  // The last one is empty, or cut off: a resume brings it again.
  blocks.pop();
  let [text, afterEnd, isShaped] = ['', 0, true];
  let lastId: string | undefined;
  let end: StreamRead['end'];
  let code: string | undefined;
  for (const block of blocks) {
    const { id, data } = readEvent(block);
    if (data === undefined) continue;
    if (end !== undefined) afterEnd++;
    if (id !== undefined) lastId = id;
    if (data === '[DONE]') {
      end ??= 'done';
      continue;
    }
    const event = JSON.parse(data) as {
      error?: { code: string; message: string; type: string };
      choices?: { delta?: { content?: string } }[];
    };
    if (event.error !== undefined) {
      end ??= 'error';
      code = event.error.code;
      isShaped = typeof event.error.message === 'string' && typeof event.error.type === 'string';
    } else text += event.choices?.[0]?.delta?.content ?? '';
  }
  return { text, lastId, end, code, afterEnd, isWhole, hasLeft, isShaped };
}

function readEvent(block: string): { id?: string; data?: string } {
  const lines = block.split('\n');
  const read = (name: string): string | undefined =>
    lines.find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2);
  const [id, data] = [read('id'), read('data')];
  return { ...(id !== undefined && { id }), ...(data !== undefined && { data }) };
}
