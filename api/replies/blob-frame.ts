import type { AccountBlobs } from '../../shared/blobs/blobs.ts';
import type { Batch, FrameType, StoredFrame } from '../../shared/jobs/append.ts';
import type { FrameReceiver } from './frame-receiver.ts';

/** Bytes of a file that its receiver is shown. */
const startBytes = 64;

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

/** The end of an answer that stays in its blob, from where it is sent. */
export class FileFrame implements StoredFrame {
  readonly seq: number;
  readonly type: FrameType;
  readonly isBlob = false;
  /** Names the blob: the data is not read. */
  readonly text: string;
  readonly blob: string;
  /** In bytes. */
  readonly size: number;
  /** Its first bytes. */
  readonly start: Buffer;

  constructor({ seq, type, text }: StoredFrame, start: Buffer) {
    const { blob, bytes } = JSON.parse(text) as { readonly blob: string; readonly bytes: number };
    this.seq = seq;
    this.type = type;
    this.text = text;
    this.blob = blob;
    this.size = bytes;
    this.start = start;
  }
}

/**
 * The end of a large answer as a file, if its receiver sends it from there: in memory it would stay until its client has read it.
 * @throws MissingBlobError if it is gone.
 */
export async function leftInFile(
  frame: StoredFrame,
  blobs: Pick<AccountBlobs, 'part'>,
  receiver: Pick<FrameReceiver, 'files'>,
): Promise<FileFrame | undefined> {
  const { files } = receiver;
  if (frame.type !== 'end' || files?.isLarge(bytesInBlob(frame)) !== true) return undefined;
  const { blob } = JSON.parse(frame.text) as { readonly blob: string };
  const start = await blobs.part(blob, { first: 0, last: startBytes - 1 });
  return files.canSend(frame, start) ? new FileFrame(frame, start) : undefined;
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
