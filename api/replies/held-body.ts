import type { ServerResponse } from 'node:http';
import { pipeline } from 'node:stream/promises';
import type { AccountBlobs, Blobs } from '../../shared/blobs/blobs.ts';
import { ApiError } from '../../shared/errors.ts';
import type { Frame } from '../../shared/jobs/append.ts';
import type { JobIdentity } from '../../shared/jobs/job-state.ts';
import { releaseMemory } from '../../shared/runtime/collections.ts';
import type { Logger } from '../../shared/runtime/log.ts';
import { withTimeout } from '../../shared/runtime/with-timeout.ts';
import { type Connections, largeAnswer } from '../bounds/connections.ts';
import { compressed, compressing, minCompressed } from '../http/compress-json.ts';
import type { Context } from '../state.ts';
import { FileFrame } from './blob-frame.ts';
import type { HeldStart, View, ViewedJob } from './view.ts';

/** The body of a held answer; as bytes if they need no decoding. */
export interface HeldBody {
  readonly body: string | Buffer;
  /** What its bytes lie in. */
  readonly memory: Buffer | undefined;
}

/** Makes the body of a held answer. The frames are not read again: their memory may be the body's. */
export function heldBody(view: View, viewed: ViewedJob, frames: readonly Frame[]): HeldBody {
  const end = frames.at(-1)?.bytes;
  const start = frames.length === 1 && end !== undefined ? view.heldStart?.(viewed, end) : undefined;
  const body = start === undefined ? view.held(viewed, frames) : begun(end as Buffer, start);
  if (typeof body !== 'string' && body.buffer === end?.buffer) return { body, memory: end };
  if (end !== undefined) releaseMemory(end);
  return { body, memory: typeof body === 'string' ? undefined : body };
}

/** Bytes with another beginning: in their own memory where that has room, as a copy of megabytes costs as much as sending them. */
function begun(bytes: Buffer, { text, replaces }: HeldStart): Buffer {
  const start = Buffer.from(text);
  if (start.length > replaces) return Buffer.concat([start, bytes.subarray(replaces)]);
  start.copy(bytes, replaces - start.length);
  return bytes.subarray(replaces - start.length);
}

/** A request that is sent a held answer. */
interface Sending {
  readonly ctx: Context;
  readonly services: { readonly connections: Pick<Connections, 'expect'> };
}

/** Makes a held answer the body of its response. @param isText whether it may be compressed */
export async function sendHeldBody(
  { ctx, services }: Sending,
  { body, memory }: HeldBody,
  isText: boolean,
): Promise<void> {
  const sent = isText && body.length >= minCompressed ? await compressed(ctx, body) : body;
  if (sent.length > largeAnswer) services.connections.expect(sent.length);
  ctx.body = sent;
  if (sent === body && memory !== undefined) releaseOnceSent(ctx.res, memory);
}

/**
 * Releases a body's memory when all of it is handed to the operating system, which Node calls `finish`
 * (https://nodejs.org/api/http.html#event-finish); V8 would collect its whole heap for every few dozen of them (benchmark case
 * `images`). Node calls it so for a connection that broke, too: what became of its writes is unknown, and its memory is left to V8.
 */
export function releaseOnceSent(response: ServerResponse, memory: Buffer): void {
  const { socket } = response;
  response.once('finish', () => {
    if (socket !== null && !socket.destroyed) releaseMemory(memory);
  });
}

/** The body of a held answer, most of which lies in a file. */
export interface HeldFile {
  readonly file: Pick<FileFrame, 'blob' | 'size'>;
  readonly start: HeldStart;
  /** Whether the file has nothing but this body: then it is deleted once that is sent. */
  readonly isOwn?: boolean;
}

/** The body of a held answer whose end was left in its file; undefined if it was not. */
export function heldFile(view: View, viewed: ViewedJob, frames: readonly Frame[]): HeldFile | undefined {
  const file = frames.at(-1);
  if (!(file instanceof FileFrame)) return undefined;
  const start = view.heldStart?.(viewed, file.start);
  return start && { file, start };
}

/** A body may take this part of the room for unsent bytes, in pieces of answers from files. */
const roomyPieces = 8;
/** How long (ms) a body may take to be stored, and each MiB of it: its caller waits meanwhile, and a store that hangs gives up after minutes. */
const storingMs = 10_000;
const storingMsOfMib = 1000;

/**
 * Puts a composed body into a file of its own if little room is left for unsent bytes: others that are being read would be interrupted
 * for it, or it for others, and it is paid. Undefined if there is room enough, or the storage does not take it.
 */
export async function storedBody(
  { services: { blobs, connections, log }, job }: Omit<FileSending, 'ctx'>,
  { body }: HeldBody,
): Promise<HeldFile | undefined> {
  if (body.length <= Math.max(largeAnswer, roomyPieces * connections.pieceBytes)) return undefined;
  const bytes = Buffer.from(body);
  const own = blobs.of(job.account);
  try {
    const stored = own.put([bytes]);
    const blob = await withTimeout(stored, storingMs + (storingMsOfMib * bytes.length) / 1024 ** 2);
    if (blob === undefined) {
      // A file that is whole after all is nobody's.
      stored.then((late) => own.delete(late)).catch(() => undefined);
      throw new Error('the store has not taken it in time');
    }
    const file = { blob, size: bytes.length };
    // Before they are released, which leaves no length.
    releaseMemory(bytes);
    return { file, start: { text: '', replaces: 0 }, isOwn: true };
  } catch (error) {
    log.warn({ err: error, job: job.id }, 'storing a large body failed; it is sent from memory');
    return undefined;
  }
}

/** A request that is sent a held answer from its file. */
interface FileSending {
  readonly ctx: Context;
  readonly services: {
    readonly blobs: Blobs;
    readonly connections: Pick<Connections, 'expect' | 'taken' | 'pieceBytes'>;
    readonly log: Logger;
  };
  readonly job: Pick<JobIdentity, 'id' | 'account'>;
}

/**
 * Begins to send a held answer from its file, as fast as its client reads, and goes on by itself. Only a piece of it is in memory: a
 * few large answers would fill that as a whole, and be interrupted for it.
 * @param isText whether it may be compressed
 */
export function sendHeldFile(sending: FileSending, held: HeldFile, isText: boolean): void {
  const { ctx, services, job } = sending;
  const { text, replaces } = held.start;
  const length = Buffer.byteLength(text) + held.file.size - replaces;
  const compressor = isText ? compressing(ctx, length) : undefined;
  ctx.respond = false;
  ctx.status = 200;
  ctx.set(ctx.state.headers);
  const content = pieces(sending, held);
  if (compressor === undefined) ctx.length = length;
  const sent = compressor === undefined ? pipeline(content, ctx.res) : pipeline(content, compressor, ctx.res);
  // Its connection is closed then, for whichever side it failed.
  const over = sent.catch(() => undefined);
  if (held.isOwn !== true) return;
  over
    .then(() => services.blobs.of(job.account).delete(held.file.blob))
    .catch((error) => services.log.warn({ err: error, job: job.id }, 'deleting a sent body failed'));
}

async function* pieces({ ctx, services, job }: FileSending, { file, start }: HeldFile): AsyncGenerator<Buffer> {
  const { blobs, connections, log } = services;
  const own = blobs.ofRecords(job.account);
  for (let first = 0; first < file.size; ) {
    const last = Math.min(file.size, first + connections.pieceBytes) - 1;
    const bytes = last - first + 1;
    connections.expect(bytes);
    const piece = await readPiece(own, file, { first, last }).catch((cause) => {
      ctx.state.streamError = new ApiError('server_error', 'The rest of the answer could not be read.', { cause });
      log.error({ err: cause, job: ctx.state.jobId }, 'reading the rest of an answer failed');
      throw cause;
    });
    yield first === 0 ? begun(piece, start) : piece;
    first = last + 1;
    connections.taken(bytes);
    if (isAllSent(ctx)) releaseMemory(piece);
  }
}

/** Whether the operating system has all that was written. What is compressed may be under way to that. */
function isAllSent({ res }: Context): boolean {
  const isBroken = res.socket === null || res.socket.destroyed;
  return !isBroken && res.writableLength === 0 && !res.hasHeader('content-encoding');
}

async function readPiece(
  blobs: AccountBlobs,
  { blob }: HeldFile['file'],
  part: { readonly first: number; readonly last: number },
): Promise<Buffer> {
  const piece = await blobs.part(blob, part);
  if (piece.length !== part.last - part.first + 1) throw new Error('the file of an answer is shorter than it was');
  return piece;
}
