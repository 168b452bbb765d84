import { EventStreamCodec, type Message } from '@smithy/eventstream-codec';
import { ApiError } from '../../../shared/errors.ts';
import { GatheredChunks } from '../../../shared/runtime/collections.ts';

/** Maximum bytes of one message: more than Bedrock may send, and a bound on what is kept of a damaged stream. */
const maxMessage = 16 * 1024 * 1024;
/** The message's length, its headers' length, and two checksums. */
const shortestMessage = 16;

const codec = new EventStreamCodec(
  ({ buffer, byteOffset, byteLength }: Uint8Array) => Buffer.from(buffer, byteOffset, byteLength).toString(),
  (text) => Buffer.from(text),
);

/** One message of an AWS event stream. */
export interface EventStreamMessage {
  /** `event`, `exception` or `error`. */
  readonly kind: string;
  /** The type of the event or of the exception; an error's code. */
  readonly type: string;
  /** JSON of an event or an exception; an error's message. */
  readonly text: string;
}

/**
 * Reads an AWS event stream (`application/vnd.amazon.eventstream`, https://smithy.io/2.0/aws/amazon-eventstream.html) from bytes
 * that may be split anywhere. A message that the stream leaves unfinished is dropped.
 */
export class EventStreamReader {
  private readonly onMessage: (message: EventStreamMessage) => void;
  private held = new GatheredChunks();
  private bytes = 0;
  /** How many bytes the next step needs. */
  private needed = 4;

  /** @param onMessage what it throws, `read` throws. */
  constructor(onMessage: (message: EventStreamMessage) => void) {
    this.onMessage = onMessage;
  }

  /** @throws ApiError for a message that is damaged or too long; nothing can be read after that. */
  read(bytes: Buffer): void {
    this.held.add(bytes);
    this.bytes += bytes.length;
    if (this.bytes < this.needed) return;
    const all = this.held.bytes();
    let start = 0;
    for (;;) {
      const left = all.length - start;
      this.needed = left < 4 ? 4 : lengthAt(all, start);
      if (left < this.needed) break;
      const end = start + this.needed;
      this.onMessage(toMessage(all.subarray(start, end)));
      start = end;
    }
    const rest = all.subarray(start);
    this.held = new GatheredChunks();
    if (rest.length > 0) this.held.add(rest);
    this.bytes = rest.length;
  }
}

function lengthAt(bytes: Buffer, start: number): number {
  const length = bytes.readUInt32BE(start);
  if (length < shortestMessage || length > maxMessage) throw damaged();
  return length;
}

function toMessage(bytes: Buffer): EventStreamMessage {
  let message: Message;
  try {
    message = codec.decode(bytes);
  } catch {
    throw damaged();
  }
  const { headers, body } = message;
  const header = (name: string): string => String(headers[`:${name}-type`]?.value ?? '');
  const kind = header('message');
  if (kind === 'error') {
    const [code, said] = [headers[':error-code'], headers[':error-message']];
    return { kind, type: String(code?.value ?? ''), text: String(said?.value ?? '') };
  }
  const text = Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString();
  return { kind, type: header(kind), text };
}

function damaged(): ApiError {
  return new ApiError('server_error', "The model's vendor sent a damaged stream.");
}
