import type { Socket } from 'node:net';
import type { WebSocket } from 'ws';
import { ApiError } from '../../shared/errors.ts';
import { errorOf, type Frame } from '../../shared/jobs/append.ts';
import type { BodyShare } from '../bounds/body-shares.ts';
import type { FrameReceiver } from './frame-receiver.ts';
import { closeCodes, SocketConnection } from './socket-connection.ts';
import { readSseEvent } from './sse-event.ts';
import {
  beyondEnd,
  type EventPosition,
  endMark,
  errorEvent,
  isBeyondEnd,
  isDelivered,
  isErrorEvent,
  type StreamDress,
} from './sse-reply.ts';

/** Options of an answer over a WebSocket. */
export interface SocketReplyOptions {
  /** The view's fold over the frames, as for SSE. */
  readonly events: (frame: Frame) => string[];
  /** How the view shows errors. */
  readonly view: StreamDress;
  /** The client's position: events up to here are suppressed. */
  readonly resumeAfter: EventPosition | undefined;
  /** Counts what is read of a stored answer until it is sent. */
  readonly share?: Pick<BodyShare, 'grow' | 'shrink'>;
}

/**
 * The events of the SSE view as WebSocket messages, a text message each: `{"id", "event", "data"}`, named after the lines of
 * the SSE event. `id` is the position to resume after; `event` is null if the endpoint has no names; `data` is the JSON
 * itself, or a string if it is not JSON (`[DONE]`). After the last one the socket is closed.
 *
 * It can receive frames before it has a socket: then it accepts the first ones and pauses until `open`. A slow client pauses
 * the reader, so that at most one batch beyond the socket's own buffer is held.
 */
export class SocketReply implements FrameReceiver {
  /** Resolves with the first frames, or rejects with the ApiError that prevents them. */
  readonly started: Promise<void>;
  /** Resolves when the connection is closed. */
  readonly closed: Promise<void>;
  frames = 0;
  /** Set by the reader of its frames: the client accepts them again. */
  onDrain: (() => void) | undefined;
  /** The error that was sent: the job's own, or why its events could not be read further. */
  error: ApiError | undefined;
  /** The position to resume after: the client's initial one, then the last event sent. */
  position: string | undefined;
  readonly #options: SocketReplyOptions;
  #connection: SocketConnection | undefined;
  #messages: string[] = [];
  #closeCode: number | undefined;
  /** Number of the fold's events, including those that the client has already. */
  #folded = 0;
  /** Bytes that are counted for what is not sent yet. */
  #unsent = 0;
  #resolveStarted: () => void = () => undefined;
  #rejectStarted: (error: ApiError) => void = () => undefined;
  #resolveClosed: () => void = () => undefined;

  constructor(options: SocketReplyOptions) {
    this.#options = options;
    const { resumeAfter: after } = options;
    if (after !== undefined)
      this.position = Number.isFinite(after.event) ? `${after.seq}.${after.event}` : `${after.seq}`;
    this.started = new Promise((resolve, reject) => {
      this.#resolveStarted = resolve;
      this.#rejectStarted = reject;
    });
    this.started.catch(() => undefined);
    this.closed = new Promise((resolve) => {
      this.#resolveClosed = resolve;
    });
  }

  /** Takes over the connection, and closes it in the end. */
  open(webSocket: WebSocket, socket: Socket): void {
    this.#connection = new SocketConnection(webSocket, socket);
    this.#connection.onDrain(() => this.#drained());
    void this.#connection.closed.then(this.#resolveClosed);
    webSocket.on('message', () => {
      if (this.#closeCode !== undefined) return;
      const error = new ApiError('invalid_request_error', 'This socket takes no messages. DELETE cancels the job.');
      this.fail(error, closeCodes.policyViolation);
      // Also if it reads nothing.
      webSocket.close(closeCodes.policyViolation);
    });
    this.#drained();
  }

  expect(bytes: number): void {
    // Its events exist beside what they are made of.
    this.#options.share?.grow(2 * bytes);
    this.#unsent += 2 * bytes;
  }

  frame(frame: Frame): void {
    if (this.#closeCode !== undefined) return;
    this.frames++;
    const error = errorOf(frame);
    if (error !== undefined) this.error = error;
    const { view, events: fold, resumeAfter } = this.#options;
    // Of some failed answers only the error is stored: a client that has a part of one is not to get its beginning once more.
    const hasBegun = this.#folded > 0 || resumeAfter === undefined;
    const isFolded = error === undefined || (view.showsErrors && hasBegun);
    const events = isFolded ? fold(frame) : [errorEvent(view, error, this.#folded)];
    this.#folded += events.length;
    for (let index = 0; index < events.length; index++) {
      this.#event(events[index] as string, frame.seq, index, isErrorEvent(frame, index, events));
    }
    if (frame.type !== 'end' && frame.type !== 'error') return;
    if (frame.type === 'end' && isBeyondEnd(resumeAfter, frame.seq, events.length)) this.fail(beyondEnd(resumeAfter));
    else this.#closeCode = closeCodes.finished;
  }

  flush(): boolean {
    this.#resolveStarted();
    return this.#send();
  }

  tick(): void {
    // The connection has its own timer, because it may outlive the reader.
  }

  /** Ends with an error other than the job's. */
  fail(error: ApiError, closeCode: number = closeCodes.failed): void {
    if (this.#closeCode !== undefined) return;
    this.#rejectStarted(error);
    this.error = error;
    this.#messages.push(toMessage(errorEvent(this.#options.view, error, this.#folded), null));
    this.#closeCode = closeCode;
    this.#send();
  }

  /** Releases the client because this process is shutting down. */
  handOver(error: ApiError): void {
    this.fail(error, closeCodes.goingAway);
  }

  #event(text: string, seq: number, index: number, isError: boolean): void {
    if (!isError && isDelivered(this.#options.resumeAfter, seq, index)) return;
    this.position = `${seq}.${index}`;
    this.#messages.push(toMessage(text, text === endMark ? null : this.position));
  }

  /** Sends all pending messages in one write; the close follows once the client has read them. Returns whether it accepts more for now. */
  #send(): boolean {
    if (this.#connection === undefined) return false;
    const messages = this.#messages;
    this.#messages = [];
    if (!this.#connection.send(messages)) return false;
    if (this.#unsent > 0) this.#options.share?.shrink(this.#unsent);
    this.#unsent = 0;
    if (this.#closeCode !== undefined) this.#connection.close(this.#closeCode, '');
    return true;
  }

  #drained(): void {
    if (this.#send() && this.#closeCode === undefined) this.onDrain?.();
  }
}

function toMessage(event: string, id: string | null): string {
  const { name, data } = readSseEvent(event);
  // Views write whole JSON objects, so text that starts like one need not be parsed.
  const json = data.startsWith('{') ? data : JSON.stringify(data);
  return `{"id":${JSON.stringify(id)},"event":${JSON.stringify(name)},"data":${json}}`;
}
