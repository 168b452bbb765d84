import { ApiError, type ErrorData } from '../../shared/errors.ts';
import type { Frame } from '../../shared/jobs/frames.ts';
import type { FrameReceiver } from './frame-receiver.ts';
import type { SocketConnection } from './socket-connection.ts';
import type { StreamDress } from './sse-reply.ts';
import { StreamedReply } from './streamed-reply.ts';

/** What the answer of one turn is made of. */
export interface ResponseSocketReplyOptions {
  readonly connection: SocketConnection;
  /** The lane that its messages name; undefined: the default lane, which has no name. */
  readonly streamId: string | undefined;
  /** The view's fold over the frames, as for SSE. */
  readonly events: (frame: Frame) => string[];
  readonly view: StreamDress;
  /** How many characters of frames are kept for the next turn. */
  readonly keptLength: number;
}

/**
 * The answer of one turn on a response socket: the events of the SSE view, a text message each, which is the event's data
 * as it stands. An error before the first of them is the caller's to tell; `[DONE]` is not sent.
 */
export class ResponseSocketReply extends StreamedReply implements FrameReceiver {
  readonly #options: ResponseSocketReplyOptions;
  readonly #stopListening: () => void;
  #messages: string[] = [];
  #kept: Frame[] | undefined = [];
  #keptLength = 0;

  constructor(options: ResponseSocketReplyOptions) {
    super();
    this.#options = options;
    this.#stopListening = options.connection.onDrain(() => this.onDrain?.());
  }

  /** All frames of an answer that ended well; undefined where it did not, or was too long to be kept. */
  get kept(): readonly Frame[] | undefined {
    return this.#kept?.at(-1)?.type === 'end' ? this.#kept : undefined;
  }

  frame(frame: Frame): void {
    if (this.isEnded) return;
    this.countFrame();
    const error = frame.type === 'error' ? ApiError.fromData(JSON.parse(frame.text) as ErrorData) : undefined;
    if (error !== undefined && !(this.isOpen && this.#options.view.showsErrors)) {
      this.fail(error);
      return;
    }
    this.markOpen();
    this.#keep(frame);
    for (const event of this.#options.events(frame)) {
      const data = eventData(event);
      if (data.startsWith('{')) this.#messages.push(withStreamId(data, this.#options.streamId));
    }
    if (frame.type === 'end' || error !== undefined) this.#end(error);
  }

  flush(): boolean {
    const messages = this.#messages;
    this.#messages = [];
    return this.#options.connection.send(messages);
  }

  tick(): void {
    // The connection has pings of its own.
  }

  /** Ends with an error: one that comes before the first event is not sent. */
  fail(error: ApiError): void {
    if (this.isEnded) return;
    if (this.isOpen) this.#messages.push(errorMessage(error, this.#options.streamId));
    this.#end(error);
    this.flush();
  }

  /** Forgets the client, who has left. */
  abandon(): void {
    if (!this.isEnded) this.#end(new ApiError('cancelled', 'The caller left.'));
  }

  #keep(frame: Frame): void {
    this.#keptLength += frame.text.length;
    if (this.#keptLength > this.#options.keptLength) this.#kept = undefined;
    this.#kept?.push(frame);
  }

  #end(error: ApiError | undefined): void {
    this.#stopListening();
    this.markEnded(error);
  }
}

/**
 * The message that tells an error: OpenAI's `ResponseWsError`, with the headers that the answer over HTTP would have had.
 * The error is nested and has its status, because Codex waits in vain for any other shape.
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

/** The data of an SSE event. */
function eventData(event: string): string {
  const lines = event.split('\n').filter((line) => line.startsWith('data: '));
  return lines.map((line) => line.slice('data: '.length)).join('\n');
}

/** Names the lane in a message, without taking the JSON apart. */
function withStreamId(json: string, streamId: string | undefined): string {
  return streamId === undefined ? json : `{"stream_id":"${streamId}",${json.slice(1)}`;
}
