import type { OpenCall } from '../open-call.ts';
import type { FaultOptions } from '../request-options.ts';
import { WireError } from '../wire-error.ts';
import { completionEvents, doneEvent, type StreamEvent } from './completion-events.ts';
import type { Completion } from './completion-wire.ts';

/** An event to write, or an action on the connection instead. */
export type StreamStep = StreamEvent | 'silence' | 'reset';

/** The texts of a fault on one endpoint's stream, as whole events. */
export interface FaultWording {
  /** An event that is not JSON. */
  malformed: string;
  /** The last event of a stream ended by an `error`, a `rate_limit` or a `failed_event`. */
  ending(fault: FaultOptions): string;
}

const chatWording: FaultWording = {
  malformed: 'data: {"id":"chatcmpl-broken","choices":[{"index":0,"del\n\n',
  ending: (fault) => `data: ${faultError(fault).toBody()}\n\n`,
};

/** The events of a stream with the fault inserted; the call is notified when the fault occurs. */
export function* faultyEvents(
  events: Iterable<StreamEvent>,
  fault: FaultOptions,
  call: OpenCall,
  wording: FaultWording = chatWording,
): Generator<StreamStep> {
  let tokens = 0;
  let met = false;
  for (const event of events) {
    if (!met && (fault.kind === 'no_done' ? event === doneEvent : tokens >= (fault.afterTokens ?? 0))) {
      met = true;
      call.meetFault(fault.kind, endingKinds.has(fault.kind));
      const { steps, goOn } = meet(fault, event, wording);
      yield* steps;
      if (!goOn) return;
    } else yield event;
    if (event.isToken) tokens += 1;
  }
}

const endingKinds = new Set(['reset', 'malformed', 'error', 'rate_limit', 'eof', 'no_done', 'failed_event']);

/** The replacement of the event at which the fault occurs, and whether the stream continues after it. */
function meet(fault: FaultOptions, event: StreamEvent, wording: FaultWording): { steps: StreamStep[]; goOn: boolean } {
  switch (fault.kind) {
    case 'silence':
    case 'reset':
      return { steps: [fault.kind], goOn: false };
    case 'error':
    case 'rate_limit':
    case 'failed_event':
      return { steps: [{ text: wording.ending(fault), isToken: false }], goOn: false };
    case 'malformed': {
      const broken = { text: wording.malformed, isToken: false };
      return { steps: event.isToken ? [broken] : [broken, event], goOn: true };
    }
    case 'eof':
    case 'no_done':
      return { steps: [], goOn: false };
    default:
      return { steps: [event], goOn: true };
  }
}

/** The error response of an `error` or `rate_limit` fault. */
export function faultError(fault: FaultOptions): WireError {
  const limited = fault.status === 429;
  const headers: Record<string, string> = {};
  if (fault.retryAfter !== undefined) {
    headers['Retry-After'] = String(Math.ceil(fault.retryAfter));
    headers['retry-after-ms'] = String(Math.round(fault.retryAfter * 1000));
  }
  return new WireError(fault.status, fault.message ?? `The sandbox was asked to fail with status ${fault.status}.`, {
    ...(limited && { type: 'requests' }),
    code: fault.code ?? (limited ? 'rate_limit_exceeded' : null),
    headers,
  });
}

/** The completion with the fault applied, if the fault affects the completion itself. */
export function faultyCompletion(completion: Completion, fault: FaultOptions): Completion {
  if (fault.kind === 'large_event') return withLargeToken(completion, fault);
  if (fault.kind !== 'no_usage') return completion;
  // A vendor that counts nothing does not know the option.
  return { ...completion, request: { ...completion.request, includeUsage: false } };
}

/** The completion with one token of its text so large that the token's event has the size requested by `large_event`. */
function withLargeToken(completion: Completion, fault: FaultOptions): Completion {
  const [first, ...others] = completion.answer.choices;
  if (first?.content === null || first?.content[0] === undefined) return completion;
  const at = Math.min(fault.afterTokens ?? 0, first.content.length - 1);
  const token = first.content[at] as string;
  const alone = { ...completion.answer, choices: [{ ...first, reasoning: [], content: [token] }] };
  const event = [...completionEvents({ ...completion, answer: alone })][1] as StreamEvent;
  const filler = 'x'.repeat(Math.max(0, fault.bytes - Buffer.byteLength(event.text)));
  const choices = [{ ...first, content: first.content.with(at, filler + token) }, ...others];
  return { ...completion, answer: { ...completion.answer, choices } };
}
