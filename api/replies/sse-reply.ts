import type { ServerResponse } from 'node:http';
import { ApiError, type ErrorData } from '../../shared/errors.ts';
import type { Frame } from '../../shared/jobs/frames.ts';
import type { FrameReceiver } from './frame-receiver.ts';
import { StreamedReply } from './streamed-reply.ts';
import type { View } from './view.ts';

/** A ping goes out after so long (ms) without an event, so that proxies and clients do not take the silence for death. */
export const pingMs = 15_000;

/** The last event of OpenAI's streams of text. Nothing comes after it, so that it needs no id. */
export const endMark = 'data: [DONE]';

/** What is folded before the first frame of a stream that opens at once; its events' ids are `0.<n>`. */
export const openingFrame: Frame = { seq: 0, type: 'progress', text: '{}' };

/** Where a client's copy of a stream ends: the frame, and how many of the events it became. */
export interface EventPosition {
  readonly seq: number;
  readonly event: number;
  /** What the client said it by. */
  readonly param?: 'starting_after' | 'Last-Event-ID';
}

/** Reads an event id (`<seq>.<n>`, or `<seq>` for all events of that frame). Undefined when it is none. */
export function parseEventId(id: string): EventPosition | undefined {
  const match = /^(\d{1,12})(?:\.(\d{1,6}))?$/.exec(id.trim());
  if (match === null) return undefined;
  return { seq: Number(match[1]), event: match[2] === undefined ? Number.POSITIVE_INFINITY : Number(match[2]) };
}

/** Whether a client whose copy ends at `position` has this event of a frame already. */
export function isDelivered(position: EventPosition | undefined, seq: number, event: number): boolean {
  return position !== undefined && (seq < position.seq || (seq === position.seq && event <= position.event));
}

/**
 * The 400 for a client whose copy ends behind the last event of a stream, or behind all that there is so far: its position is
 * another job's, or none at all.
 */
export function beyondEnd({ param }: EventPosition): ApiError {
  const message = 'The event to resume after is not one of this job: it has fewer events.';
  return new ApiError('invalid_request_error', message, { param: param ?? null });
}

/** Whether `position` names an event that the last frame, with its `count` events, has not. */
export function isBeyondEnd(
  position: EventPosition | undefined,
  seq: number,
  count: number,
): position is EventPosition {
  if (position === undefined || position.seq < seq) return false;
  return position.seq > seq || (Number.isFinite(position.event) && position.event >= Math.max(count, 1));
}

/** What a view says of its streams beside the events of its frames. */
export type StreamDress = Pick<View, 'showsErrors' | 'errorEvent' | 'ping'>;

/** The event that tells an error, as the view wants it. @param sequence how many events came before it */
export function errorEvent({ errorEvent }: StreamDress, error: ApiError, sequence: number): string {
  return errorEvent?.(error, sequence) ?? `data: ${JSON.stringify(error.toWire())}`;
}

/** What an answer of events is made of. */
export interface SseOptions {
  readonly response: ServerResponse;
  /** The view's fold over the frames; an empty text is the place of an event that is left out. */
  readonly events: (frame: Frame) => string[];
  /** How the view tells errors and fills silences. */
  readonly view: StreamDress;
  /** Whether the view has something to say before the first frame. */
  readonly opensAtOnce?: boolean;
  /** What the client has already: events up to here are suppressed. */
  readonly resumeAfter?: EventPosition | undefined;
  /** When the request came, in ms of `performance.now()`. */
  readonly startedAt: number;
  /** Whether a worker has begun the job: then a long silence is answered with a status and comments. */
  readonly isRunning: () => Promise<boolean>;
}

/**
 * A streamed answer. The status waits for the first frame, so that an early error is a real HTTP error; after 15 s of a
 * worker's silence it goes out with a comment. Every event leaves whole, and all events that came together in one write.
 */
export class SseReply extends StreamedReply implements FrameReceiver {
  /** Events of the fold, those that the client has already among them. */
  #folded = 0;
  readonly #options: SseOptions;
  readonly #response: ServerResponse;
  #pending = '';
  #lastWriteAt = Date.now();
  #hasBegun = false;
  #isFull = false;
  #isAskingState = false;

  constructor(options: SseOptions) {
    super();
    this.#options = options;
    this.#response = options.response;
  }

  /** Opens before the first frame, where the view has something to say then. */
  begin(): void {
    if (this.#hasBegun || this.isEnded || !this.#options.opensAtOnce) return;
    this.#hasBegun = true;
    this.#fold(openingFrame);
    this.flush();
  }

  frame(frame: Frame): void {
    if (this.isEnded) return;
    this.begin();
    this.countFrame();
    const error = frame.type === 'error' ? ApiError.fromData(JSON.parse(frame.text) as ErrorData) : undefined;
    if (error !== undefined && !(this.isOpen && this.#options.view.showsErrors)) {
      this.fail(error, frame.seq);
      return;
    }
    const count = this.#fold(frame);
    if (frame.type !== 'end' && error === undefined) return;
    const { resumeAfter } = this.#options;
    if (isBeyondEnd(resumeAfter, frame.seq, count)) this.fail(beyondEnd(resumeAfter));
    else this.#end(error);
  }

  flush(): boolean {
    if (!this.isEnded && (this.#pending !== '' || (this.isOpen && !this.isHeadSent))) this.#write();
    return !this.#isFull;
  }

  tick(now: number): void {
    if (this.isEnded) return;
    const silent = now - this.#lastWriteAt;
    if (this.#isFull || silent < pingMs) return;
    if (this.isOpen) this.#ping();
    else this.#openWhenRunning();
  }

  /** Ends the stream with an error: as a status while there is none, else as its last event. */
  fail(error: ApiError, seq?: number): void {
    if (this.isEnded) return;
    if (!this.isOpen) {
      this.markEnded(error);
      return;
    }
    const event = errorEvent(this.#options.view, error, this.#folded);
    if (seq === undefined) this.#pending += `${event}\n\n`;
    else this.#event(event, seq, 0);
    this.#end(error);
  }

  /** Forgets the client, who has left. */
  abandon(): void {
    if (!this.isEnded) this.markEnded(new ApiError('cancelled', 'The caller left.'));
  }

  /** Returns how many events the frame has become. */
  #fold(frame: Frame): number {
    this.#open();
    const events = this.#options.events(frame);
    this.#folded += events.length;
    for (let index = 0; index < events.length; index++) this.#event(events[index] as string, frame.seq, index);
    return events.length;
  }

  #event(text: string, seq: number, index: number): void {
    if (text === '' || isDelivered(this.#options.resumeAfter, seq, index)) return;
    // The id stands behind the data, which some clients know by the line before it: an empty one, or the event's name.
    // Those of the mark of the end some look for as OpenAI sends them.
    this.#pending += text === endMark ? `${text}\n\n` : `${text}\nid: ${seq}.${index}\n\n`;
  }

  #open(): void {
    if (this.isOpen) return;
    this.markOpen();
    this.#response.writeHead(200, {
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-cache',
      'x-accel-buffering': 'no',
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
    if (hasRoom) return;
    this.#isFull = true;
    this.#response.once('drain', () => {
      this.#isFull = false;
      this.#lastWriteAt = Date.now();
      this.onDrain?.();
    });
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
