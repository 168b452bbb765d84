import { ApiError } from '../errors.ts';

/**
 * Frames: the pieces of an answer, numbered from 1 per job and on across attempts.
 *
 * A batch is what one script call appends: one log entry and one live message. It is plain text, not JSON in JSON, which
 * keeps a token's cost down: a head line `<attempt> <first seq> <who serves it>`, then a line per frame: one letter for the type and the
 * frame's data as JSON text. An upper-case letter says that the data is a blob reference, for frames over 64 KiB.
 */
export type FrameType = 'delta' | 'progress' | 'end' | 'error';

export interface Frame {
  readonly seq: number;
  readonly type: FrameType;
  /** The data as JSON text. Kept as text because most views pass it on without looking inside. */
  readonly text: string;
}

/** A frame as it stands in a batch: its data may be a reference to a blob. */
export interface StoredFrame extends Frame {
  readonly isBlob: boolean;
}

export interface Batch {
  readonly attempt: number;
  readonly firstSeq: number;
  /** Who serves it, see served.ts. */
  readonly served: string;
  readonly frames: StoredFrame[];
}

const letters: Record<FrameType, string> = { delta: 'd', progress: 'p', end: 'e', error: 'x' };
const types: Record<string, FrameType> = { d: 'delta', p: 'progress', e: 'end', x: 'error' };

export function isTerminal(frame: { readonly type: FrameType }): boolean {
  return frame.type === 'end' || frame.type === 'error';
}

/** JSON text of one line: what was pretty-printed is written anew. Views pass it on as a line of a stream of events. */
export function oneLine(text: string): string {
  return text.includes('\n') || text.includes('\r') ? JSON.stringify(JSON.parse(text)) : text;
}

/** One line of a batch. */
export function frameLine(type: FrameType, text: string, isBlob = false): string {
  return (isBlob ? letters[type].toUpperCase() : letters[type]) + oneLine(text);
}

/**
 * Reads a batch from `start` of the text.
 * @throws ApiError 503 for frames of a kind that a newer version has written. @throws Error when the text is no batch,
 * which means a defect.
 */
export function parseBatch(text: string, start = 0): Batch {
  const headEnd = text.indexOf('\n', start);
  const space = text.indexOf(' ', start);
  if (headEnd < 0 || space < 0 || space > headEnd) throw new Error('a batch of frames has no head');
  const attempt = Number(text.slice(start, space));
  const second = text.indexOf(' ', space + 1);
  const seqEnd = second < 0 || second > headEnd ? headEnd : second;
  const firstSeq = Number(text.slice(space + 1, seqEnd));
  const served = text.slice(seqEnd + 1, headEnd);
  const frames: StoredFrame[] = [];
  let from = headEnd + 1;
  while (from < text.length) {
    let to = text.indexOf('\n', from);
    if (to < 0) to = text.length;
    const letter = text[from] as string;
    const lower = letter.toLowerCase();
    const type = types[lower];
    if (type === undefined) throw unknownFrame();
    frames.push({ seq: firstSeq + frames.length, type, text: text.slice(from + 1, to), isBlob: letter !== lower });
    from = to + 1;
  }
  return { attempt, firstSeq, served, frames };
}

/** The process that has written it may be newer than this one; a repeat may be served by one of its own version. */
function unknownFrame(): ApiError {
  return new ApiError(
    'service_unavailable',
    'This answer was written by a newer version of the gateway. Retry the request.',
    {
      cause: new Error('a batch of frames has a line of unknown type'),
    },
  );
}
