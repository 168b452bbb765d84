import type { FrameType, StoredFrame } from '../../shared/jobs/frames.ts';

/** A frame whose data was read from a blob. It may be megabytes, which some views send without decoding them. */
export class BlobFrame implements StoredFrame {
  readonly seq: number;
  readonly type: FrameType;
  readonly isBlob = false;
  readonly bytes: Buffer;
  #text: string | undefined;

  constructor({ seq, type }: StoredFrame, bytes: Buffer) {
    this.seq = seq;
    this.type = type;
    this.bytes = bytes;
  }

  get text(): string {
    this.#text ??= this.bytes.toString();
    return this.#text;
  }
}
