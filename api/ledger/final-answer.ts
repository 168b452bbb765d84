import { unlessMissing } from '../../shared/blobs/blob-storage.ts';
import type { AccountBlobs } from '../../shared/blobs/blobs.ts';
import { readLog } from '../../shared/jobs/answer-log.ts';
import { type Frame, frameLine, isTerminal, parseBatch } from '../../shared/jobs/append.ts';
import type { RedisClient } from '../../shared/redis/redis.ts';
import type { View, ViewedJob } from '../replies/view.ts';

/** The fields of the job that `View.final` may read. */
type FinalJob = Pick<ViewedJob, 'id' | 'viewOptions'>;

/**
 * Reads the whole log of an ended job (at most 32 MiB, the limit of a log) with its blobs, and makes the batch from which its
 * view can show the answer again. Returns undefined when the log is no longer complete.
 * @param blobs of the job's account
 * @param isHeld whether the answer is not streamed
 * @throws UnshownAnswer if its view fails on it; errors of Redis or the blob storage.
 */
export async function readFinalAnswer(
  { redis, blobs }: { readonly redis: RedisClient; readonly blobs: AccountBlobs },
  job: FinalJob,
  view: View,
  isHeld: boolean,
): Promise<string | undefined> {
  const frames: Frame[] = [];
  for (;;) {
    const { batches, isLast } = await readLog(redis, job.id, frames.at(-1)?.seq ?? 0);
    for (const batch of batches) {
      if (batch.firstSeq !== (frames.at(-1)?.seq ?? 0) + 1) return undefined;
      for (const { isBlob, ...frame } of batch.frames) {
        const text = isBlob ? await textOfBlob(blobs, frame.text) : frame.text;
        if (text === undefined) return undefined;
        frames.push({ ...frame, text });
      }
    }
    if (isLast) break;
  }
  const last = frames.at(-1);
  if (last === undefined || !isTerminal(last)) return undefined;
  return finalBatch(finalFrames(frames, job, view, isHeld), last.seq);
}

/** A view failed on a vendor's output. A retry would fail, too. */
export class UnshownAnswer extends Error {}

/** Returns the content of a blob that a frame refers to, or undefined if it has been swept. */
async function textOfBlob(blobs: AccountBlobs, reference: string): Promise<string | undefined> {
  return await unlessMissing(blobs.text((JSON.parse(reference) as { blob: string }).blob));
}

/**
 * Selects frames to store. An error suffices unless its view shows more. Otherwise the view decides; by default all except progress.
 */
function finalFrames(frames: readonly Frame[], job: FinalJob, view: View, isHeld: boolean): readonly Frame[] {
  const last = frames.at(-1) as Frame;
  const isUnshown = last.type === 'error' && !view.showsErrors;
  if (isUnshown || frames.length === 1 || (isHeld && view.heldFromEnd)) return [last];
  try {
    return view.final?.(frames, job) ?? frames.filter(({ type }) => type !== 'progress');
  } catch (error) {
    throw new UnshownAnswer((error as Error).name);
  }
}

/** Formats frames as a batch whose last frame has the number `lastSeq`. */
export function finalBatch(frames: readonly Pick<Frame, 'type' | 'text'>[], lastSeq: number): string {
  const lines = frames.map(({ type, text }) => frameLine(type, text));
  return `0 ${lastSeq - frames.length + 1}\n${lines.join('\n')}`;
}

/** Parses a stored batch. @throws Error when it is malformed, which means a defect. */
export function framesOfBatch(text: string): Frame[] {
  return parseBatch(text).frames;
}
