import type { ServerResponse } from 'node:http';
import { ApiError } from '../../shared/errors.ts';
import { errorOf, type Frame } from '../../shared/jobs/append.ts';
import type { BodyShare } from '../bounds/body-shares.ts';
import type { FrameReceiver } from './frame-receiver.ts';
import { StreamedReply } from './streamed-reply.ts';
import type { View } from './view.ts';

/** Interval (ms) of pings without events, so that proxies and clients do not consider the stream dead. */
export const pingMs = 15_000;

/** The headers of a stream of events. */
export const eventHeaders = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-cache',
  'x-accel-buffering': 'no',
} as const;

/** The last event of OpenAI's text streams. Nothing follows it, so it needs no id. */
export const endMark = 'data: [DONE]';

/** Folded before the first frame of a stream that opens at once; its events' ids are `0.<n>`. */
export const openingFrame: Frame = { seq: 0, type: 'progress', text: '{}' };

/** The end of a client's copy of a stream: the frame, and the index of its last event. */
export interface EventPosition {
  readonly seq: number;
  readonly event: number;
  /** The client's parameter with the position. */
  readonly param?: 'starting_after' | 'Last-Event-ID';
}

/** Parses an event id (`<seq>.<n>`, or `<seq>` for all events of that frame). Undefined if it is malformed. */
export function parseEventId(id: string): EventPosition | undefined {
  const match = /^(\d{1,12})(?:\.(\d{1,6}))?$/.exec(id.trim());
  if (match === null) return undefined;
  return { seq: Number(match[1]), event: match[2] === undefined ? Number.POSITIVE_INFINITY : Number(match[2]) };
}

/** Whether a client at `position` has this event of a frame already. */
export function isDelivered(position: EventPosition | undefined, seq: number, event: number): boolean {
  return position !== undefined && (seq < position.seq || (seq === position.seq && event <= position.event));
}

/**
 * Whether an event tells the error that ended an answer. Everybody gets it, whatever their position: where Redis has lost frames that
 * a client had got, the error has the number of one of them, and the stream would end without a word.
 */
export function isErrorEvent({ type }: Frame, index: number, { length }: readonly string[]): boolean {
  return type === 'error' && index === length - 1;
}

/** The 400 for a position after the last event of a stream, or after all events so far: it belongs to another job, or to none. */
export function beyondEnd({ param }: EventPosition): ApiError {
  const message = 'The event to resume after is not one of this job: it has fewer events.';
  return new ApiError('invalid_request_error', message, { param: param ?? null });
}

/** Whether `position` is after the last frame, which has `count` events. */
export function isBeyondEnd(
  position: EventPosition | undefined,
  seq: number,
  count: number,
): position is EventPosition {
  if (position === undefined || position.seq < seq) return false;
  return position.seq > seq || (Number.isFinite(position.event) && position.event >= Math.max(count, 1));
}

/** The parts of a view for streams besides the events of its frames. */
export type StreamDress = Pick<View, 'showsErrors' | 'errorEvent' | 'ping'>;

/** The error event in the view's format. @param sequence number of events before it */
export function errorEvent({ errorEvent }: StreamDress, error: ApiError, sequence: number): string {
  return errorEvent?.(error, sequence) ?? `data: ${JSON.stringify(error.toWire())}`;
}

/** Options of an answer of events. */
export interface SseOptions {
  readonly response: ServerResponse;
  /** Further headers, sent with the status. */
  readonly headers: Readonly<Record<string, string>>;
  /** The view's fold over the frames; an empty text takes the index of an omitted event. */
  readonly events: (frame: Frame) => string[];
  /** How the view shows errors and fills silences. */
  readonly view: StreamDress;
  /** Whether the view has events before the first frame. */
  readonly opensAtOnce?: boolean;
  /** The client's position: events up to here are suppressed. */
  readonly resumeAfter?: EventPosition | undefined;
  /** When the request arrived, in ms of `performance.now()`. */
  readonly startedAt: number;
  /** Counts what is read of a stored answer until it is sent. Left out for the request that pays for it. */
  readonly share?: Pick<BodyShare, 'grow' | 'shrink'> | undefined;
  /** Whether a worker has started the job: then a long silence leads to a status and comments. */
  readonly isRunning: () => Promise<boolean>;
}

/**
 * A streamed answer. The status waits for the first frame, so that an early error is a real HTTP error; after 15 s of a
 * worker's silence it is sent with a comment. Events are sent whole, and all that arrive together in one write.
 */
export class SseReply extends StreamedReply implements FrameReceiver {
  /** Number of the fold's events, including those that the client has already. */
  #folded = 0;
  readonly #options: SseOptions;
  readonly #response: ServerResponse;
  #pending = '';
  #lastWriteAt = Date.now();
  #hasBegun = false;
  #isFull = false;
  #isAskingState = false;
  /** Bytes that are counted for what is not sent yet. */
  #unsent = 0;

  constructor(options: SseOptions) {
    super();
    this.#options = options;
    this.#response = options.response;
  }

  /** Opens before the first frame if the view has events for that. */
  begin(): void {
    if (this.#hasBegun || this.isEnded || !this.#options.opensAtOnce) return;
    this.#hasBegun = true;
    this.#fold(openingFrame);
    this.flush();
  }

  expect(bytes: number): void {
    // Its events exist beside what they are made of.
    this.#options.share?.grow(2 * bytes);
    this.#unsent += 2 * bytes;
  }

  frame(frame: Frame): void {
    if (this.isEnded) return;
    this.begin();
    this.countFrame(frame);
    const error = errorOf(frame);
    if (error !== undefined && !(this.isOpen && this.#options.view.showsErrors)) {
      this.fail(error, frame.seq);
      return;
    }
    const count = this.#fold(frame);
    if (frame.type !== 'end' && error === undefined) return;
    const { resumeAfter } = this.#options;
    if (error === undefined && isBeyondEnd(resumeAfter, frame.seq, count)) this.fail(beyondEnd(resumeAfter));
    else this.#end(error);
  }

  flush(): boolean {
    if (!this.isEnded && (this.#pending !== '' || (this.isOpen && !this.isHeadSent))) this.#write();
    return !this.#isFull;
  }

  tick(now: number): void {
    if (this.isEnded) return;
    // The clock may have been put back.
    this.#lastWriteAt = Math.min(this.#lastWriteAt, now);
    const silent = now - this.#lastWriteAt;
    if (this.#isFull || silent < pingMs) return;
    if (this.isOpen) this.#ping();
    else this.#openWhenRunning();
  }

  /** Ends the stream with an error: as a status if none is sent, else as its last event. */
  fail(error: ApiError, seq?: number): void {
    if (this.isEnded) return;
    if (!this.isOpen) {
      this.markEnded(error);
      return;
    }
    const event = errorEvent(this.#options.view, error, this.#folded);
    if (seq === undefined) this.#pending += `${event}\n\n`;
    else this.#event(event, seq, 0, true);
    this.#end(error);
  }

  /** Returns the number of the frame's events. */
  #fold(frame: Frame): number {
    this.#open();
    const events = this.#options.events(frame);
    this.#folded += events.length;
    for (let index = 0; index < events.length; index++) {
      this.#event(events[index] as string, frame.seq, index, isErrorEvent(frame, index, events));
    }
    return events.length;
  }

  #event(text: string, seq: number, index: number, isError: boolean): void {
    if (text === '' || (!isError && isDelivered(this.#options.resumeAfter, seq, index))) return;
    // The id follows the data, because some clients recognize data by the line before it: an empty one, or the event's name.
    // Some expect the end mark exactly as OpenAI sends it.
    this.#pending += text === endMark ? `${text}\n\n` : `${text}\nid: ${seq}.${index}\n\n`;
  }

  #open(): void {
    if (this.isOpen) return;
    this.markOpen();
    this.#response.writeHead(200, {
      ...this.#options.headers,
      ...eventHeaders,
      'openai-processing-ms': String(Math.round(performance.now() - this.#options.startedAt)),
    });
  }

  #openWhenRunning(): void {
    if (this.#isAskingState) return;
    this.#isAskingState = true;
    this.#options
      .isRunning()
      .then((isRunning) => {
        if (!isRunning || this.isOpen || this.isEnded) return;
        this.#open();
        this.#ping();
      })
      .catch(() => undefined)
      .finally(() => {
        this.#isAskingState = false;
      });
  }

  #ping(): void {
    this.#pending += `${this.#options.view.ping ?? ': ping'}\n\n`;
    this.#write();
  }

  #write(): void {
    const text = this.#takePending();
    this.#lastWriteAt = Date.now();
    const socket = this.sendHead(this.#response);
    const hasRoom = text === '' || this.#response.write(text);
    socket?.uncork();
    if (hasRoom) {
      this.#noteSent();
      return;
    }
    this.#isFull = true;
    this.#response.once('drain', () => {
      this.#isFull = false;
      this.#noteSent();
      this.#lastWriteAt = Date.now();
      this.onDrain?.();
    });
  }

  #noteSent(): void {
    if (this.#unsent > 0) this.#options.share?.shrink(this.#unsent);
    this.#unsent = 0;
  }

  #end(error: ApiError | undefined): void {
    const text = this.#takePending();
    const socket = this.sendHead(this.#response);
    this.endResponse(this.#response, text, error);
    socket?.uncork();
  }

  #takePending(): string {
    const text = this.#pending;
    this.#pending = '';
    this.bytes += Buffer.byteLength(text);
    return text;
  }
}
