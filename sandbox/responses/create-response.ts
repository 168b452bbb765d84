import { randomBytes } from 'node:crypto';
import { type ChatAnswer, composeAnswer } from '../chat/chat-answer.ts';
import { faultError, faultyEvents } from '../chat/stream-faults.ts';
import { holdAnswer, streamAnswer } from '../chat/timed-answer.ts';
import { countUsage } from '../chat/usage.ts';
import type { Exchange } from '../exchange.ts';
import { answerMedia, type Delivery } from '../media-answer.ts';
import type { FaultOptions } from '../request-options.ts';
import { WireError } from '../wire-error.ts';
import { planItems } from './output-items.ts';
import { ResponseEvents } from './response-events.ts';
import { endedResponse, failedResponse, type PlannedResponse } from './response-object.ts';
import { type ResponseRequest, readResponseRequest } from './response-request.ts';

/** With a prefix, and the digits that number an item, an id stays within OpenAI's 64 characters. */
const ID_BYTES = 22;

/** `POST /v1/responses`; nothing is stored, so the whole conversation must be in `input`. */
export function createResponse(exchange: Exchange): void {
  const { body, request, state } = exchange;
  const asked = readResponseRequest(body, request.headers);
  const digits = randomBytes(ID_BYTES).toString('hex');
  const answer = compose(asked, digits);
  const [choice] = answer.choices;
  if (choice === undefined) throw new Error('an answer has at least one choice');
  const response: PlannedResponse = {
    id: `resp_${digits}`,
    created: Math.floor(Date.now() / 1000),
    request: asked,
    items: planItems(asked, choice, digits),
    isTruncated: choice.finishReason === 'length',
    usage: countUsage(asked.chat, answer, state.promptCache),
    reportsUsage: true,
  };
  const { options } = asked.chat;
  const tokensPerSecond = options.tokensPerSecond ?? answer.tokensPerSecond;
  answerMedia(exchange, { ...asked.chat, options: { ...options, tokensPerSecond } }, (delivery) => {
    return deliver(delivery, response);
  });
}

async function deliver({ call, pace, fault }: Delivery, planned: PlannedResponse): Promise<void> {
  const large = fault?.kind === 'large_event' ? withLargeDelta(planned, fault) : planned;
  const response = { ...large, reportsUsage: fault?.kind !== 'no_usage' };
  if (!response.request.chat.stream) {
    const isFailed = fault?.kind === 'failed_event';
    const body = JSON.stringify(isFailed ? failedResponse(response, faultError(fault)) : endedResponse(response));
    await holdAnswer(call, body, response.usage.completion_tokens, pace, fault);
    return;
  }
  const events = new ResponseEvents(response);
  const steps = fault === undefined ? events.all() : faultyEvents(events.all(), fault, call, events);
  await streamAnswer(call, steps, pace, fault);
}

/** Chat's names of the parameters at fault, with those of a response. */
const parameterNames: Readonly<Record<string, string>> = {
  messages: 'input',
  response_format: 'text.format.schema',
};

function compose(request: ResponseRequest, id: string): ChatAnswer {
  try {
    return composeAnswer(request.chat, id);
  } catch (error) {
    const param = error instanceof WireError ? parameterNames[error.param ?? ''] : undefined;
    if (!(error instanceof WireError) || param === undefined) throw error;
    throw new WireError(error.status, error.message, { type: error.type, code: error.code, param });
  }
}

/**
 * The response with one token of its text so large that the token's event has the size requested by `large_event`; the events
 * with the whole text are larger still.
 */
function withLargeDelta(response: PlannedResponse, fault: FaultOptions): PlannedResponse {
  const index = response.items.findIndex((item) => item.kind === 'message');
  const message = response.items[index];
  if (message === undefined || message.tokens.length === 0) return response;
  const at = Math.min(fault.afterTokens ?? 0, message.tokens.length - 1);
  const bytes = Buffer.byteLength(deltaEvent(response, at));
  const filler = 'x'.repeat(Math.max(0, fault.bytes - bytes));
  const tokens = message.tokens.with(at, filler + message.tokens[at]);
  return { ...response, items: response.items.with(index, { ...message, tokens }) };
}

/** The event of one token of the message's text. */
function deltaEvent(response: PlannedResponse, at: number): string {
  let left = at;
  for (const { text } of new ResponseEvents(response).all()) {
    if (!text.startsWith('event: response.output_text.delta\n')) continue;
    if (left === 0) return text;
    left -= 1;
  }
  return '';
}
