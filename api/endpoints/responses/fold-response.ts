import {
  encryptedReasoning,
  type NativeResponseEnd,
  ownItemId,
  type ResponseItem,
} from '../../../shared/capabilities/response.ts';
import type { ResponseTool } from '../../../shared/capabilities/response-tools.ts';
import { fieldsOf, numberOf, objectsOf } from '../../../shared/capabilities/vendor-values.ts';
import type { ApiError } from '../../../shared/errors.ts';
import { errorOf, type Frame } from '../../../shared/jobs/append.ts';
import { addAll } from '../../../shared/runtime/collections.ts';
import type { ViewedJob } from '../../replies/view.ts';
import { chatChunkChoice } from '../chat/fold-chat-completion.ts';
import { ChatResponseFold } from './fold-chat-response.ts';
import type { ResponseViewOptions } from './parse-response.ts';
import { responseError } from './response-error.ts';
import type { ResponseEvent } from './response-event.ts';
import type { ResponseProgress } from './response-object.ts';
import { responseUsage } from './response-usage.ts';
import { wholeItemEvents } from './whole-item-events.ts';

type Fields = Readonly<Record<string, unknown>>;

/** Facts of the job that a fold needs. */
export type FoldedJob = Pick<ViewedJob, 'id' | 'viewOptions'>;

/** The view options of the request, with defaults for an expired one. */
export function optionsOf({ viewOptions }: Pick<ViewedJob, 'viewOptions'>): ResponseViewOptions {
  return { echo: {}, include: [], afterInput: 0, ...viewOptions };
}

/** How a response ended. */
export type ResponseEnd = ResponseProgress & { readonly status: 'completed' | 'incomplete' | 'failed' | 'cancelled' };

/**
 * Folds the frames of a response, of any kind (see shared/capabilities/response.ts), into the events of its items and its
 * end. It also defines a third kind of frames: `joinedFrames`.
 */
export class ResponseFold {
  /** How it ended; undefined until then. */
  end: ResponseEnd | undefined;
  /** Why it failed; undefined if it has not, or was cancelled. */
  failure: ApiError | undefined;
  /** The ended items by output index, which vendors choose: in a list, a high one would leave as many holes. */
  readonly #output = new Map<number, ResponseItem>();
  #serviceTier: unknown;
  #events: ResponseEvent[] = [];
  readonly #job: FoldedJob;
  readonly #chat: ChatResponseFold;

  constructor(job: FoldedJob) {
    this.#job = job;
    const { echo, include } = optionsOf(job);
    const tools = (echo.tools ?? []) as readonly ResponseTool[];
    const isSummarized = (echo.reasoning as Fields | undefined)?.summary != null;
    const isCarried = include.includes(encryptedReasoning);
    const options = { jobId: job.id, tools, isSummarized, isCarried };
    this.#chat = new ChatResponseFold(options, (event) => this.#events.push(event));
  }

  /** Adds the next frame and returns the resulting events. */
  push(frame: Frame): readonly ResponseEvent[] {
    this.#events = [];
    if (frame.type === 'delta') this.#takeDelta(JSON.parse(frame.text) as Fields);
    else if (frame.type === 'end') this.#takeEnd(JSON.parse(frame.text) as Fields);
    const error = errorOf(frame);
    if (error !== undefined) this.#fail(error);
    return this.#events;
  }

  #takeDelta(fields: Fields): void {
    if (typeof fields.type === 'string') this.#takeEvent(fields as ResponseEvent);
    else if (fields.choices === undefined && Array.isArray(fields.items)) this.#takeWhole(objectsOf(fields.items));
    else this.#takeChunk(fields);
  }

  #takeChunk(fields: Fields): void {
    this.#serviceTier = fields.service_tier ?? this.#serviceTier;
    this.#chat.take(fields);
  }

  /** Passes on a vendor's event with our own ids. */
  #takeEvent(event: ResponseEvent): void {
    const [given] = objectsOf([event.item]);
    const item = given && this.#own(given);
    const own = {
      ...event,
      ...(typeof event.item_id === 'string' && { item_id: ownItemId(event.item_id, this.#job.id) }),
      ...(item && { item }),
    };
    if (own.type === 'response.output_item.done' && item) this.#keep(item, event.output_index);
    this.#events.push(own);
  }

  #takeWhole(items: readonly ResponseItem[]): void {
    for (const item of items) {
      addAll(this.#events, wholeItemEvents(item, this.#output.size));
      this.#keep(item, this.#output.size);
    }
  }

  #keep(item: ResponseItem, index: unknown): void {
    this.#output.set(numberOf(index, this.#output.size), item);
  }

  #takeEnd(fields: Fields): void {
    const completedAt = fields.completed_at as number | undefined;
    if (fields.response === undefined) this.#endChat(fields, completedAt);
    else this.#endNative(fieldsOf(fields.response) as unknown as NativeResponseEnd['response'], completedAt);
  }

  #endChat({ choices, usage, ...rest }: Fields, completedAt: number | undefined): void {
    const whole = objectsOf(choices).map(chatChunkChoice);
    this.#takeChunk({ ...rest, choices: whole });
    this.#chat.end();
    const { incompleteReason } = this.#chat;
    this.end = {
      status: incompleteReason === undefined ? 'completed' : 'incomplete',
      incompleteReason,
      output: this.#chat.output,
      usage: responseUsage(usage),
      completedAt,
      more: this.#serviceTier == null ? {} : { service_tier: this.#serviceTier },
    };
  }

  #endNative(response: NativeResponseEnd['response'], completedAt: number | undefined): void {
    const { status, incomplete_details: incomplete, output, usage, ...more } = response;
    this.#takeWhole(objectsOf(output).map((item) => this.#own(item)));
    this.end = {
      status,
      incompleteReason: incomplete?.reason,
      output: this.#ended(),
      usage,
      completedAt,
      more,
    };
  }

  #fail(error: ApiError): void {
    const isCancelled = error.code === 'cancelled';
    if (!isCancelled) this.failure = error;
    this.end = {
      status: isCancelled ? 'cancelled' : 'failed',
      error: responseError(error),
      output: [...this.#chat.output.filter((item) => item !== undefined), ...this.#ended()],
    };
  }

  /** The ended items in the order of their indices. */
  #ended(): ResponseItem[] {
    return [...this.#output].sort(([one], [other]) => one - other).map(([, item]) => item);
  }

  #own(item: ResponseItem): ResponseItem {
    return typeof item.id === 'string' ? { ...item, id: ownItemId(item.id, this.#job.id) } : item;
  }
}

/** The fold of all frames of an ended response. */
export function foldedResponse(job: FoldedJob, frames: readonly Frame[]): ResponseEnd {
  const fold = new ResponseFold(job);
  for (const frame of frames) fold.push(frame);
  if (fold.end === undefined) throw new Error('the frames of a response have no end');
  return fold.end;
}

/**
 * Joins frames to the fewest equivalent ones: one with the items, as `{"items": […]}`, and an end (an error alone, if no item had
 * ended). Their events are others, and numbered otherwise.
 */
export function joinedFrames(job: FoldedJob, frames: readonly Frame[]): readonly Frame[] {
  if (frames.length <= 2) return frames;
  const last = frames.at(-1) as Frame;
  const { status, incompleteReason, output, usage, completedAt, more } = foldedResponse(job, frames);
  const whole: Frame = { ...last, type: 'delta', text: JSON.stringify({ items: output }) };
  if (last.type === 'error') return output?.length ? [whole, last] : [last];
  const details = incompleteReason === undefined ? null : { reason: incompleteReason };
  const response = { ...more, status, incomplete_details: details, usage: usage ?? null };
  return [whole, { ...last, text: JSON.stringify({ response, completed_at: completedAt }) }];
}
