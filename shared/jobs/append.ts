import { ApiError, type ErrorData } from '../errors.ts';
import { jobKeys } from '../redis/keys.ts';
import type { RedisClient } from '../redis/redis.ts';
import { inBatchesTo, loadScript, readVerdict, refusalScript, shareNode } from '../redis/script.ts';
import { otherVersion } from '../runtime/wire-version.ts';
import { leaseMs, leaseScript } from './job-state.ts';

/** `ok`, or why the worker must stop; see append.lua. */
export const ownerships = ['ok', 'fenced', 'ended', 'gone'] as const;
export type Ownership = (typeof ownerships)[number];

const verdicts = [...ownerships, 'gap'] as const;

/** `gap`: the log lacks the frames before these and cannot accept them. */
export type AppendVerdict = (typeof verdicts)[number];

/** The reply to a call with a journal: the frames are in the log, and the job has these readers. */
export interface Journaling {
  readonly readers: readonly string[];
}

const script = loadScript<string[]>(new URL('./append.lua', import.meta.url), refusalScript, leaseScript);

/** The command scripts publish with: sharded on a Cluster, where a script may publish only on its own node. */
export function publishCommand(isCluster: boolean): 'PUBLISH' | 'SPUBLISH' {
  return isCluster ? 'SPUBLISH' : 'PUBLISH';
}

/** What readers have got of the lines of a call before it. */
export interface PublishedLines {
  /** Sequence number of the first line that they have not got. */
  readonly firstSeq: number;
  /** Bytes of the lines before that. */
  readonly bytes: number;
}

/** Frames to append: `lines` is newline-separated, see `Batch`. */
export interface AppendCall {
  readonly jobId: string;
  readonly attempt: number;
  readonly firstSeq: number;
  /** Who serves the answer, see `servedText`. */
  readonly served: string;
  readonly lastSeq: number;
  readonly lines: string;
  readonly hasDelta: boolean;
  /** Lifetime of the log if the job is never ended, in ms. */
  readonly lifetimeMs: number;
  readonly isCluster: boolean;
  readonly published?: PublishedLines | undefined;
  /** Where in its journal the caller will write what follows, if it will. */
  readonly journal?: string | undefined;
}

/**
 * Appends frames to the answer log and publishes them in one step. Idempotent. The verdict, or the error, goes to a callback:
 * there is an append for nearly every token.
 */
export const appendTo = inBatchesTo(appendAll, shareNode, 'retried');

async function appendAll(
  redis: RedisClient,
  calls: readonly AppendCall[],
): Promise<(AppendVerdict | Journaling | Error)[]> {
  const { isCluster, jobId: any } = calls[0] as AppendCall;
  const keys: string[] = [];
  // Readers are subscribed to their channels of every tag; on a Cluster the calls' jobs share one.
  const args: (string | number)[] = [leaseMs, publishCommand(isCluster), jobKeys.inboxPrefix(any)];
  for (const call of calls) {
    const { jobId, attempt, firstSeq, lastSeq, served, lines, lifetimeMs, hasDelta, published, journal = '' } = call;
    keys.push(jobKeys.state(jobId), jobKeys.log(jobId));
    const head = `${attempt} ${firstSeq} ${served}\n`;
    const left = published && Buffer.byteLength(head) + published.bytes;
    const rest = published === undefined ? '' : `${left} ${attempt} ${published.firstSeq} ${served}`;
    args.push(jobId, attempt, firstSeq, lastSeq, head + lines, lifetimeMs, hasDelta ? '1' : '0', rest, journal);
  }
  return (await script(redis, keys, args)).map(readReply);
}

function readReply(reply: string): AppendVerdict | Journaling | Error {
  if (reply.startsWith('ok ')) return { readers: reply.slice(3).split(' ') };
  return reply.startsWith('error ') ? new Error(reply) : readVerdict(verdicts, reply);
}

/**
 * Frames: the pieces of an answer, numbered from 1 per job, continuing across attempts.
 *
 * A batch is what one script call appends: one log entry and one live message. It is plain text rather than nested JSON, which
 * keeps the cost of a token down: a head line `<attempt> <first seq> <who serves it>`, then a line per frame: one letter for
 * the type and the frame's data as JSON text. An upper-case letter marks the data as a blob reference, for frames over 64 KiB.
 */
export type FrameType = 'delta' | 'progress' | 'end' | 'error';

export interface Frame {
  readonly seq: number;
  readonly type: FrameType;
  /** The data as JSON text. Kept as text because most views pass it through unparsed. */
  readonly text: string;
  /** The same in UTF-8, of a frame that was read from a blob: `text` decodes it when it is first used. */
  readonly bytes?: Buffer;
  /** The blob that it was read from. */
  readonly blob?: string;
}

/** A frame as stored in a batch: its data may be a blob reference. */
export interface StoredFrame extends Frame {
  readonly isBlob: boolean;
}

export interface Batch {
  readonly attempt: number;
  readonly firstSeq: number;
  /** Who serves it, see `servedText`. */
  readonly served: string;
  readonly frames: StoredFrame[];
}

/** Limit of all frames of an answer before its end, in characters: one beyond it ends with an error. */
export const maxFrames = 32 * 1024 * 1024;

const letters: Record<FrameType, string> = { delta: 'd', progress: 'p', end: 'e', error: 'x' };
const types: Record<string, FrameType> = { d: 'delta', p: 'progress', e: 'end', x: 'error' };

export function isTerminal(frame: { readonly type: FrameType }): boolean {
  return frame.type === 'end' || frame.type === 'error';
}

/** JSON text on one line: pretty-printed text is re-serialized. Views send it as a line of an event stream. */
export function oneLine(text: string): string {
  return text.includes('\n') || text.includes('\r') ? JSON.stringify(JSON.parse(text)) : text;
}

/** What a batch has after the frame `seq`; undefined if that is nothing, or frames between the two are missing. */
export function batchAfter(batch: Batch, seq: number): Batch | undefined {
  const { firstSeq, frames } = batch;
  if (firstSeq > seq + 1 || firstSeq + frames.length <= seq + 1) return undefined;
  return firstSeq === seq + 1 ? batch : { ...batch, firstSeq: seq + 1, frames: frames.slice(seq + 1 - firstSeq) };
}

/** One line of a batch. */
export function frameLine(type: FrameType, text: string, isBlob = false): string {
  return (isBlob ? letters[type].toUpperCase() : letters[type]) + oneLine(text);
}

/** The frame of the error that an answer ends with; `errorOf` is its inverse. */
export function errorFrame(error: ApiError): { readonly type: 'error'; readonly text: string } {
  return { type: 'error', text: JSON.stringify(error.toData()) };
}

/** The line of that frame. */
export function errorLine(error: ApiError): string {
  const { type, text } = errorFrame(error);
  return frameLine(type, text);
}

/** The error that a frame has; undefined for a frame of another type. */
export function errorOf({ type, text }: Pick<Frame, 'type' | 'text'>): ApiError | undefined {
  return type === 'error' ? ApiError.fromData(JSON.parse(text) as ErrorData) : undefined;
}

/** Whether a line refers to a blob. */
export function isBlobLine(line: string): boolean {
  const letter = line[0] as string;
  return letter !== letter.toLowerCase();
}

/**
 * Parses a batch that begins at `start` of the text.
 * @throws ApiError 503 for frames of a kind written by another version.
 * @throws Error when the text is not a batch, which means a defect.
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
    if (type === undefined) throw otherVersion('a frame');
    frames.push({ seq: firstSeq + frames.length, type, text: text.slice(from + 1, to), isBlob: letter !== lower });
    from = to + 1;
  }
  return { attempt, firstSeq, served, frames };
}
