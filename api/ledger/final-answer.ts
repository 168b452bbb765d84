import { MissingBlobError } from '../../shared/blobs/blob-storage.ts';
import type { Blobs } from '../../shared/blobs.ts';
import { readLog } from '../../shared/jobs/answer-log.ts';
import { type Frame, frameLine, isTerminal, parseBatch } from '../../shared/jobs/frames.ts';
import type { RedisClient } from '../../shared/redis.ts';
import type { View } from '../endpoints/endpoint.ts';

/**
 * Reads the whole log of an ended job (at most 32 MiB, which is what a log may hold, and its blobs) and makes of it the
 * batch from which its view can show the answer again; undefined when the log is not whole any more.
 * @param isHeld that the answer is no stream
 */
export async function readFinalAnswer(
  { redis, blobs }: { readonly redis: RedisClient; readonly blobs: Blobs },
  jobId: string,
  view: View,
  isHeld: boolean,
): Promise<string | undefined> {
  const frames: Frame[] = [];
  for (;;) {
    const { batches, isLast } = await readLog(redis, jobId, frames.at(-1)?.seq ?? 0);
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
  return last !== undefined && isTerminal(last) ? finalBatch(finalFrames(frames, view, isHeld), last.seq) : undefined;
}

/** What a blob that a frame refers to holds; undefined where it has been swept. */
async function textOfBlob(blobs: Blobs, reference: string): Promise<string | undefined> {
  return await readBlobText(blobs, (JSON.parse(reference) as { blob: string }).blob);
}

/** A blob's text; undefined where it has been swept. @throws Error when the storage does not answer. */
export async function readBlobText(blobs: Blobs, id: string): Promise<string | undefined> {
  try {
    return await blobs.text(id);
  } catch (error) {
    if (error instanceof MissingBlobError) return undefined;
    throw error;
  }
}

/** An error stands for itself; of the rest the view knows best what it needs. Without its word nothing but progress goes. */
function finalFrames(frames: readonly Frame[], view: View, isHeld: boolean): readonly Frame[] {
  const last = frames.at(-1) as Frame;
  if (last.type === 'error' || frames.length === 1 || (isHeld && view.heldFromEnd)) return [last];
  return view.final?.(frames) ?? frames.filter(({ type }) => type !== 'progress');
}

/** A batch of frames whose last has the number `lastSeq`. */
export function finalBatch(frames: readonly Pick<Frame, 'type' | 'text'>[], lastSeq: number): string {
  const lines = frames.map(({ type, text }) => frameLine(type, text));
  return `0 ${lastSeq - frames.length + 1}\n${lines.join('\n')}`;
}

/** The frames of a stored batch. @throws Error when it is none, which means a defect. */
export function framesOfBatch(text: string): Frame[] {
  return parseBatch(text).frames;
}
