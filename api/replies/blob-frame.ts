import type { AccountBlobs } from '../../shared/blobs/blobs.ts';
import type { Batch, FrameType, StoredFrame } from '../../shared/jobs/append.ts';

/** A frame whose data was read from a blob. It may be megabytes, which some views send without decoding them. */
export class BlobFrame implements StoredFrame {
  readonly seq: number;
  readonly type: FrameType;
  readonly isBlob = false;
  readonly bytes: Buffer;
  readonly blob: string;
  #text: string | undefined;

  constructor({ seq, type }: StoredFrame, bytes: Buffer, blob: string) {
    this.seq = seq;
    this.type = type;
    this.bytes = bytes;
    this.blob = blob;
  }

  get text(): string {
    this.#text ??= this.bytes.toString();
    return this.#text;
  }
}

/** The bytes of a frame's data in its blob; 0 if it has none. */
export function bytesInBlob({ isBlob, text }: StoredFrame): number {
  return isBlob ? (JSON.parse(text) as { readonly bytes: number }).bytes : 0;
}

/**
 * A batch with its frames' data, where that is in blobs.
 * @throws MissingBlobError if one is gone.
 */
export async function withBlobs(batch: Batch, blobs: AccountBlobs): Promise<Batch> {
  const readFrame = async (frame: StoredFrame): Promise<StoredFrame> => {
    if (!frame.isBlob) return frame;
    const { blob, bytes } = JSON.parse(frame.text) as { blob: string; bytes: number };
    return new BlobFrame(frame, await blobs.bytes(blob, bytes), blob);
  };
  return { ...batch, frames: await Promise.all(batch.frames.map(readFrame)) };
}
