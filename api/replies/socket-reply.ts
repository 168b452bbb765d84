import type { Socket } from 'node:net';
import { WebSocket } from 'ws';
import { ApiError } from '../../shared/errors.ts';
import { errorOf, type Frame } from '../../shared/jobs/append.ts';
import type { BodyShare } from '../bounds/body-shares.ts';
import type { FrameReceiver } from './frame-receiver.ts';
import { readSseEvent } from './sse-event.ts';
import {
  beyondEnd,
  type EventPosition,
  endMark,
  errorEvent,
  isBeyondEnd,
  isDelivered,
  isErrorEvent,
  pingMs,
  type StreamDress,
} from './sse-reply.ts';

/** Time without a response to pings after which a client is considered gone. */
const silentMs = 90_000;

/** Close codes (RFC 6455, section 7.4.1). */
const closeCodes = {
  /** The job's last event, possibly an error, has been sent. */
  finished: 1000,
  /** This process is shutting down: the same path resumes on another one. */
  goingAway: 1001,
  /** The client sent a message. */
  policyViolation: 1008,
  /** The events cannot be read further. */
  failed: 1011,
} as const;

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
  #webSocket: WebSocket | undefined;
  #socket: Socket | undefined;
  #messages: string[] = [];
  #closeCode: number | undefined;
  #isFull = true;
  /** Number of the fold's events, including those that the client has already. */
  #folded = 0;
  /** Checks since the client was heard, or had to read. Counted, as the clock of the host may be put right meanwhile. */
  #unheardChecks = 0;
  /** Bytes that are counted for what is not sent yet. */
  #unsent = 0;
  #pings: NodeJS.Timeout | undefined;
  #resolveBegun: () => void = () => undefined;
  #rejectBegun: (error: ApiError) => void = () => undefined;
  #resolveClosed: () => void = () => undefined;

  constructor(options: SocketReplyOptions) {
    this.#options = options;
    const { resumeAfter: after } = options;
    if (after !== undefined)
      this.position = Number.isFinite(after.event) ? `${after.seq}.${after.event}` : `${after.seq}`;
    this.started = new Promise((resolve, reject) => {
      this.#resolveBegun = resolve;
      this.#rejectBegun = reject;
    });
    this.started.catch(() => undefined);
    this.closed = new Promise((resolve) => {
      this.#resolveClosed = resolve;
    });
  }

  /** Takes over the connection, and closes it in the end. */
  open(webSocket: WebSocket, socket: Socket): void {
    this.#webSocket = webSocket;
    this.#socket = socket;
    this.#unheardChecks = 0;
    this.#pings = setInterval(() => this.#checkAlive(), pingMs);
    webSocket.on('pong', () => {
      this.#unheardChecks = 0;
    });
    webSocket.on('message', () => this.#refuseMessage());
    // An error closes the connection; it has no other receiver.
    webSocket.on('error', () => undefined);
    webSocket.once('close', () => {
      clearInterval(this.#pings);
      this.#resolveClosed();
    });
    socket.on('drain', () => this.#drained());
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
    this.#resolveBegun();
    this.#send();
    return !this.#isFull;
  }

  tick(): void {
    // The connection has its own timer, because it may outlive the reader.
  }

  /** Ends with an error other than the job's. */
  fail(error: ApiError, closeCode: number = closeCodes.failed): void {
    if (this.#closeCode !== undefined) return;
    this.#rejectBegun(error);
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

  /** Sends all pending messages in one write; the close follows once the client has read them. */
  #send(): void {
    const [webSocket, socket] = [this.#webSocket, this.#socket];
    if (webSocket === undefined || socket === undefined) return;
    const messages = this.#messages;
    this.#messages = [];
    socket.cork();
    for (const message of messages) webSocket.send(message);
    socket.uncork();
    this.#isFull = socket.writableNeedDrain;
    if (this.#isFull) {
      this.#unheardChecks = 0;
      return;
    }
    if (this.#unsent > 0) this.#options.share?.shrink(this.#unsent);
    this.#unsent = 0;
    if (this.#closeCode !== undefined) this.#close();
  }

  #drained(): void {
    this.#unheardChecks = 0;
    this.#isFull = false;
    this.#send();
    if (!this.#isFull && this.#closeCode === undefined) this.onDrain?.();
  }

  #close(): void {
    this.#webSocket?.close(this.#closeCode);
  }

  #checkAlive(): void {
    // A full connection gets no pings, so it sends no responses either.
    if (this.#isFull) return;
    if (++this.#unheardChecks * pingMs > silentMs) this.#webSocket?.terminate();
    else if (this.#webSocket?.readyState === WebSocket.OPEN) this.#webSocket.ping();
  }

  #refuseMessage(): void {
    if (this.#closeCode !== undefined) return;
    const error = new ApiError('invalid_request_error', 'This socket takes no messages. DELETE cancels the job.');
    this.fail(error, closeCodes.policyViolation);
    this.#close();
  }
}

function toMessage(event: string, id: string | null): string {
  const { name, data } = readSseEvent(event);
  // Views write whole JSON objects, so text that starts like one need not be parsed.
  const json = data.startsWith('{') ? data : JSON.stringify(data);
  return `{"id":${JSON.stringify(id)},"event":${JSON.stringify(name)},"data":${json}}`;
}
