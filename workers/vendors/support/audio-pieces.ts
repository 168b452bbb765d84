/** Maximum bytes of audio in one frame: as base64 they still travel inline. */
const maxPiece = 32 * 1024;

/** Audio in, the texts of frames out. Audio from one iteration of the event loop is batched, because a vendor's pieces may be tiny. */
export class AudioPieces {
  private readonly write: (text: string) => void;
  private pieces: Buffer[] = [];
  private size = 0;
  private flushing: NodeJS.Immediate | undefined;

  /** @param write takes the text of a `delta` frame */
  constructor(write: (text: string) => void) {
    this.write = write;
  }

  add(bytes: Buffer): void {
    this.pieces.push(bytes);
    this.size += bytes.length;
    if (this.size >= maxPiece) this.flush();
    else this.flushing ??= setImmediate(() => this.flush());
  }

  /** Writes the rest. */
  flush(): void {
    clearImmediate(this.flushing);
    this.flushing = undefined;
    const audio = Buffer.concat(this.pieces);
    this.pieces = [];
    this.size = 0;
    for (let at = 0; at < audio.length; at += maxPiece) {
      this.write(`{"audio":"${audio.toString('base64', at, at + maxPiece)}"}`);
    }
  }
}
