import { once } from 'node:events';
import { GatheredChunks, releaseMemory } from '../../shared/runtime/collections.ts';
import { abortError } from './aborted.ts';
import { type AnswerHolder, countAnswer, freeBytes, type LongAnswer } from './answer-memory.ts';

/** The job that a file is read for. */
interface FileReader {
  /** Keeps it until the job is over. */
  readonly holder?: AnswerHolder | undefined;
  readonly signal: AbortSignal;
  /** Has the content fail: its server does not go on, while others need the memory. */
  readonly giveUp: () => void;
}

/**
 * Reads a file that becomes a part of an answer, in base64, and counts it with the answers: no more of it is read than there is room for.
 * @returns the base64 in bytes
 * @throws ApiError when the job is stopped while it waits; what the content fails with
 */
export async function readAsBase64(content: AsyncIterable<Buffer>, reader: FileReader): Promise<Buffer> {
  const base64 = new GatheredChunks(releaseMemory);
  const room = new EventTarget();
  let answer: LongAnswer | undefined;
  let rest = Buffer.alloc(0);
  let length = 0;
  let isWhole = false;
  const add = (bytes: Buffer): void => {
    const text = bytes.toString('base64');
    base64.add(Buffer.from(text, 'latin1'));
    length += text.length;
  };
  try {
    for await (const chunk of content) {
      const bytes = Buffer.concat([rest, chunk]);
      // Three bytes are four characters.
      const end = bytes.length - (bytes.length % 3);
      add(bytes.subarray(0, end));
      rest = bytes.subarray(end);
      if (length <= freeBytes) continue;
      answer ??= countAnswer(reader.holder, () => room.dispatchEvent(new Event('free')), reader.giveUp);
      if (!answer.growTo(length)) await becomesFree(room, reader.signal);
    }
    add(rest);
    isWhole = true;
    return base64.bytes();
  } finally {
    answer?.end(isWhole);
  }
}

async function becomesFree(room: EventTarget, signal: AbortSignal): Promise<void> {
  await once(room, 'free', { signal }).catch(() => {
    throw abortError(signal);
  });
}
