import type { ApiError } from '../../shared/errors.ts';
import { errorOf, type Frame } from '../../shared/jobs/append.ts';
import type { FrameReceiver } from './frame-receiver.ts';
import type { SocketConnection } from './socket-connection.ts';
import { readSseEvent } from './sse-event.ts';
import type { StreamDress } from './sse-reply.ts';
import { StreamedReply } from './streamed-reply.ts';

/** Options of the answer to one socket request. */
export interface ResponseSocketReplyOptions {
  readonly connection: SocketConnection;
  /** The lane named in its messages; undefined for the default lane, which has no name. */
  readonly streamId: string | undefined;
  /** The view's fold over the frames, as for SSE. */
  readonly events: (frame: Frame) => string[];
  readonly view: StreamDress;
  /** Maximum characters of frames kept for the next request. */
  readonly keptLength: number;
  /** Counts characters that are to be kept. False if there is no room for them: then the answer is not kept. */
  readonly reserve: (characters: number) => boolean;
}

/**
 * The answer to one request on a response socket: the events of the SSE view, a text message each, which is the event's data
 * unchanged. An error before the first of them is reported by the caller; `[DONE]` is not sent.
 */
export class ResponseSocketReply extends StreamedReply implements FrameReceiver {
  readonly #options: ResponseSocketReplyOptions;
  readonly #stopListening: () => void;
  #messages: string[] = [];
  #kept: Frame[] | undefined = [];
  /** Characters counted by `reserve`. */
  reserved = 0;

  constructor(options: ResponseSocketReplyOptions) {
    super();
    this.#options = options;
    this.#stopListening = options.connection.onDrain(() => this.onDrain?.());
  }

  /** All frames of a completed answer; undefined if it did not complete, or was too long to be kept. */
  get kept(): readonly Frame[] | undefined {
    return this.#kept?.at(-1)?.type === 'end' ? this.#kept : undefined;
  }

  frame(frame: Frame): void {
    if (this.isEnded) return;
    this.countFrame(frame);
    const error = errorOf(frame);
    if (error !== undefined && !(this.isOpen && this.#options.view.showsErrors)) {
      this.fail(error);
      return;
    }
    this.markOpen();
    this.#keep(frame);
    for (const event of this.#options.events(frame)) {
      const { data } = readSseEvent(event);
      if (data.startsWith('{')) this.#messages.push(withStreamId(data, this.#options.streamId));
    }
    if (frame.type === 'end' || error !== undefined) this.markEnded(error);
  }

  flush(): boolean {
    const messages = this.#messages;
    this.#messages = [];
    return this.#options.connection.send(messages);
  }

  tick(): void {
    // The connection has its own pings.
  }

  /** Ends with an error, which is not sent before the first event. */
  fail(error: ApiError): void {
    if (this.isEnded) return;
    if (this.isOpen) this.#messages.push(errorMessage(error, this.#options.streamId));
    this.markEnded(error);
    this.flush();
  }

  #keep(frame: Frame): void {
    if (this.#kept === undefined) return;
    const { length } = frame.text;
    if (this.reserved + length > this.#options.keptLength || !this.#options.reserve(length)) {
      this.#kept = undefined;
      return;
    }
    this.reserved += length;
    this.#kept.push(frame);
  }

  protected override markEnded(error: ApiError | undefined): void {
    this.#stopListening();
    super.markEnded(error);
  }
}

/**
 * The error message: OpenAI's `ResponseWsError`, with the headers that an HTTP response would have. The error is nested and
 * contains its status, because Codex waits in vain for any other shape.
 */
export function errorMessage(error: ApiError, streamId?: string): string {
  const headers = error.headers();
  const message = {
    type: 'error',
    status: error.status,
    ...error.toWire(),
    ...(Object.keys(headers).length > 0 && { headers }),
  };
  return withStreamId(JSON.stringify(message), streamId);
}

/** Adds the lane to a message without parsing its JSON. */
function withStreamId(json: string, streamId: string | undefined): string {
  return streamId === undefined ? json : `{"stream_id":"${streamId}",${json.slice(1)}`;
}
