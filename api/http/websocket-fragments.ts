/** What a fragment of a message, and what is read of it at once, take in memory beside their bytes. */
const pieceBytes = 128;

/** Bit of a fragment's first byte: its message ends with it. Opcodes from the first one of control frames on, such as pings, are none. */
const lastBit = 0x80;
const [opcodeBits, firstControl] = [0x0f, 0x8];
/** Bits of the second byte, and their values before a longer length. */
const [lengthBits, mediumLength, longLength] = [0x7f, 126, 127];
const maskBytes = 4;

/**
 * Follows the fragments of a WebSocket's messages by their heads (RFC 6455, section 5.2). Its parser keeps those of a message until that
 * is whole, and does not tell: thousands of one byte take dozens of times their bytes.
 */
export class WebSocketFragments {
  /** What those of an unfinished message take beside its bytes. */
  overhead = 0;
  #head: number[] = [];
  /** Bytes of the fragment that are still to come. */
  #rest = 0;
  #isUnfinished = false;
  #isLast = false;

  /** Follows what was read of the connection. */
  read(chunk: Buffer): void {
    for (let at = 0; at < chunk.length; ) {
      const skipped = Math.min(this.#rest, chunk.length - at);
      this.#rest -= skipped;
      at += skipped;
      if (skipped === 0) this.#readHead(chunk[at++] as number);
      if (this.#rest === 0 && this.#isLast) this.#end();
    }
    if (this.#isUnfinished) this.overhead += pieceBytes;
  }

  #readHead(byte: number): void {
    this.#head.push(byte);
    const [first = 0, second = 0] = this.#head;
    const short = second & lengthBits;
    const lengthBytes = short === longLength ? 8 : short === mediumLength ? 2 : 0;
    if (this.#head.length < 2 + lengthBytes + maskBytes) return;
    const length = this.#head.slice(2, 2 + lengthBytes).reduce((sum, next) => sum * 256 + next, 0);
    this.#rest = lengthBytes === 0 ? short : length;
    this.#head = [];
    if ((first & opcodeBits) >= firstControl) return;
    this.overhead += pieceBytes;
    this.#isUnfinished = true;
    this.#isLast = (first & lastBit) !== 0;
  }

  #end(): void {
    this.overhead = 0;
    this.#isUnfinished = false;
    this.#isLast = false;
  }
}
