import type { ServerResponse } from 'node:http';
import type { Frame } from '../../shared/jobs/append.ts';
import { releaseMemory } from '../../shared/runtime/collections.ts';
import type { View, ViewedJob } from './view.ts';

/** The body of a held answer; as bytes if they need no decoding. */
export interface HeldBody {
  readonly body: string | Buffer;
  /** What its bytes lie in. */
  readonly memory: Buffer | undefined;
}

/** Makes the body of a held answer. The frames are not read again: their memory may be the body's. */
export function heldBody(view: View, viewed: ViewedJob, frames: readonly Frame[]): HeldBody {
  const end = frames.at(-1)?.bytes;
  const body = (end && view.heldBytes?.(viewed, end)) ?? view.held(viewed, frames);
  if (typeof body !== 'string' && body.buffer === end?.buffer) return { body, memory: end };
  if (end !== undefined) releaseMemory(end);
  return { body, memory: typeof body === 'string' ? undefined : body };
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
