import { encryptedReasoning, type ResponseItem } from '../../../shared/capabilities/response.ts';
import { carriesThought, readUnsignedThought } from '../../../shared/capabilities/signed-thought.ts';
import { objectsOf } from '../../../shared/capabilities/vendor-values.ts';
import type { ApiError } from '../../../shared/errors.ts';
import { sseEvent } from '../../replies/sse-event.ts';
import { openingFrame } from '../../replies/sse-reply.ts';
import type { ResourceState, View, ViewedJob } from '../../replies/view.ts';
import { foldedResponse, joinedFrames, optionsOf, ResponseFold } from './fold-response.ts';
import type { ResponseViewOptions } from './parse-response.ts';
import { responseError } from './response-error.ts';
import type { ResponseEvent } from './response-event.ts';
import { type ResponseProgress, responseObject } from './response-object.ts';

/**
 * The view of responses, native or over a chat. Streamed: OpenAI's events, numbered from 0; a failed one ends with `error` and
 * `response.failed`, a cancelled one with the latter, others with their last event and `[DONE]`. A held answer watched as a stream
 * has each of its texts in one piece.
 */
export const responseView: View<ResponseViewOptions> = {
  stream: (job) => eventsOf(job, (error) => [failureEvent(error)]),
  opensAtOnce: (job) => isBackground(job),
  held: (job, frames) => JSON.stringify(shownResponse(job, foldedResponse(job, frames))),
  // A watcher of a background response may resume at any of its events.
  final: (frames, job) => {
    if (isBackground(job)) return frames.filter(({ type }) => type !== 'progress');
    return joinedFrames(job, frames);
  },
  showsErrors: true,
  errorEvent: (failure, sequence) => eventText(failureEvent(failure), sequence),
  resource: (job, state) => shownResponse(job, progressOf(job, state)),
};

/** The fold for a response socket, where an `error` is a message of another shape, which ends its lane: a failed response has none. */
export function socketEvents(job: ViewedJob<ResponseViewOptions>): ReturnType<View['stream']> {
  return eventsOf(job, () => []);
}

/** @param beforeFailure the events before `response.failed` */
function eventsOf(
  job: ViewedJob<ResponseViewOptions>,
  beforeFailure: (error: ApiError) => ResponseEvent[],
): ReturnType<View['stream']> {
  const fold = new ResponseFold(job);
  const beginning = beginningOf(job);
  let sequence = 0;
  const sse = (event: ResponseEvent): string => eventText(event, sequence++);
  return (frame) => {
    const begun = frame === openingFrame ? beginning.splice(0, 2) : beginning.splice(0);
    const events = [...begun, ...fold.push(frame).map((event) => shownEvent(job, event))].map(sse);
    if (fold.end === undefined) return events;
    const { status } = fold.end;
    const hasFailed = status === 'failed' || status === 'cancelled';
    const type = `response.${hasFailed ? 'failed' : status}`;
    if (fold.failure !== undefined) events.push(...beforeFailure(fold.failure).map(sse));
    events.push(sse({ type, response: shownResponse(job, fold.end) }));
    return hasFailed ? events : [...events, 'data: [DONE]'];
  };
}

/** OpenAI's reference has the fields, and its service sends them as an object, by which alone its own clients throw. */
function failureEvent(failure: ApiError): ResponseEvent {
  const { error } = failure.toWire();
  const { message, param, code } = error;
  return { type: 'error', code, message, param, error };
}

function eventText(event: ResponseEvent, sequence: number): string {
  const { type, ...fields } = event;
  return sseEvent(type, JSON.stringify({ type, sequence_number: sequence, ...fields }));
}

/** The events before the first frame's own. In the background the first two are sent at once. */
function beginningOf(job: ViewedJob<ResponseViewOptions>): ResponseEvent[] {
  const isQueued = isBackground(job);
  const at = (status: 'queued' | 'in_progress'): Record<string, unknown> => responseObject(job, { status });
  return [
    { type: 'response.created', response: at(isQueued ? 'queued' : 'in_progress') },
    ...(isQueued ? [{ type: 'response.queued', response: at('queued') }] : []),
    { type: 'response.in_progress', response: at('in_progress') },
  ];
}

function progressOf(
  job: ViewedJob<ResponseViewOptions>,
  { status, frames, error, endedAt }: ResourceState,
): ResponseProgress {
  if (frames !== undefined) {
    const end = foldedResponse(job, frames);
    return { completedAt: endedAt === undefined ? undefined : Math.floor(endedAt / 1000), ...withoutUndefined(end) };
  }
  return { status, error: error === undefined ? null : responseError(error) };
}

function withoutUndefined<T extends object>(fields: T): T {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as T;
}

function shownResponse(job: ViewedJob<ResponseViewOptions>, progress: ResponseProgress): Record<string, unknown> {
  const output = progress.output?.map((item) => shownItem(job, item));
  return responseObject(job, { ...progress, ...(output && { output }) });
}

function shownEvent(job: ViewedJob<ResponseViewOptions>, event: ResponseEvent): ResponseEvent {
  const [item] = objectsOf([event.item]);
  return item === undefined ? event : { ...event, item: shownItem(job, item) };
}

/** The vendor always encrypts its reasoning for the next turn; callers see it only if `withoutUnasked` keeps it. */
function shownItem(job: ViewedJob<ResponseViewOptions>, item: ResponseItem): ResponseItem {
  const { include, isForNextTurn } = optionsOf(job);
  const shown = withoutUnasked(item, include);
  return isForNextTurn ? withoutCopy(shown) : shown;
}

/** Without the copy of its own text, which frames that are kept have, too, if the caller asked for it. */
function withoutCopy(item: ResponseItem): ResponseItem {
  if (readUnsignedThought(item.encrypted_content) === undefined) return item;
  const { encrypted_content: _copy, ...rest } = item;
  return rest;
}

/**
 * Removes what is shown only if `include` requests it. Google's signatures and Claude's thoughts are always shown:
 * Codex does not request reasoning of unknown models, some of Google's accept no call back without its signature, and Claude does
 * not think on without its thought.
 */
export function withoutUnasked(item: ResponseItem, include: readonly string[]): ResponseItem {
  if (item.type !== 'reasoning' || include.includes(encryptedReasoning)) return item;
  const { encrypted_content: encrypted, ...shown } = item;
  return carriesThought(encrypted) ? item : shown;
}

/**
 * The job of a response for the gateway's own reading of it, for the next turn: with the encrypted reasoning that a native vendor needs to
 * continue, but without a second copy of reasoning whose text its item has.
 */
export function forNextTurn(viewed: ViewedJob<ResponseViewOptions>): ViewedJob<ResponseViewOptions> {
  const viewOptions = { ...viewed.viewOptions, include: [encryptedReasoning], isForNextTurn: true } as const;
  return { ...viewed, viewOptions };
}

/** Whether a response runs in the background, and can be watched at any time. */
export function isBackground(job: Pick<ViewedJob<Partial<ResponseViewOptions>>, 'viewOptions'>): boolean {
  return optionsOf(job).echo.background === true;
}
