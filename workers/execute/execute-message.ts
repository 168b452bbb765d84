import { parseExact, stringifyExact } from '../../shared/capabilities/exact-json.ts';
import type { RoutedModel } from '../../shared/catalogue/catalogue.ts';
import { ApiError } from '../../shared/errors.ts';
import { FairTurns } from '../../shared/fairness/fair-turns.ts';
import { acceptsAnthropicFields } from '../../shared/vendors/field-support.ts';
import { TokenCounter } from '../usage/token-counter.ts';
import { requestText } from '../vendors/request-body.ts';
import { inCallersNames } from './callers-names.ts';
import { type Execute, methodOf } from './execution.ts';
import { toVendorsMessage } from './message-names.ts';
import { withoutHints } from './without-hints.ts';

const counter = new TokenCounter();
/** As many wait as this worker runs. */
const anyNumber = { tasks: Number.POSITIVE_INFINITY, bytes: Number.POSITIVE_INFINITY };
const givenUp = (): ApiError => new ApiError('cancelled', 'The count was given up.');
/** A count may take seconds, and costs nothing: those of one account would have all others wait until their deadlines. */
const counting = new FairTurns(1, anyNumber, { tooMany: givenUp, tooLate: givenUp });

/** A message: a chat without the fields that its vendor or model would refuse. */
export const executeMessage: Execute = async ({ vendor, row, call, sink }) => {
  const request = withinMaximum(toVendorsMessage(withoutHints(requestText(call.request), row), row), row);
  try {
    const asMessage = { beginsWithCounts: true, isEffortTranslated: true, isPrefilled: true } as const;
    return await methodOf(vendor, 'chat')({ ...call, request, ...asMessage }, sink);
  } catch (error) {
    throw inCallersNames(error, messageNames, (param) => pathInMessage(param, request));
  }
};

const limit = /"max_completion_tokens":(\d+)/g;

/**
 * The chat with a limit that its model can reach: every message has one, and clients such as Claude Code send the same for all models.
 * Anthropic's own refuse a higher one. Only a request that may contain one is parsed.
 */
function withinMaximum(request: string, { maxOutputTokens: most, vendorRow }: RoutedModel): string {
  if (most === undefined || acceptsAnthropicFields(vendorRow)) return request;
  if (![...request.matchAll(limit)].some(([, tokens]) => Number(tokens) > most)) return request;
  const chat = parseExact(request) as { max_completion_tokens?: number };
  return stringifyExact({ ...chat, max_completion_tokens: Math.min(most, chat.max_completion_tokens ?? most) });
}

/**
 * The path of the caller's turn for that of a message of the chat, in which the system prompt is a message, and each result of a tool
 * one before the rest of its turn. What is inside of a block has another path, too, and is left out.
 */
function pathInMessage(param: string, request: string): string | undefined {
  const [, position, block = ''] = /^messages\[(\d+)\](\.content(?:\[\d+\])?)?/.exec(param) ?? [];
  if (position === undefined) return undefined;
  const { messages } = JSON.parse(request) as { messages: readonly { role: string }[] };
  const index = Number(position);
  if (messages[index] === undefined) return undefined;
  const first = messages[0]?.role === 'system' ? 1 : 0;
  if (index < first) return 'system';
  const isAfterResult = (at: number): boolean => at > 0 && messages[at - 1]?.role === 'tool';
  const begins = (at: number): boolean => !isAfterResult(at) || !['tool', 'user'].includes(String(messages[at]?.role));
  const turns = messages.slice(first, index + 1).filter((_, at) => begins(first + at));
  const isWhole = messages[index].role === 'user' && !isAfterResult(index);
  return `messages[${turns.length - 1}]${isWhole ? block : ''}`;
}

/** The names of a chat's fields in a message, if they differ. */
const messageNames = new Map([
  ['max_completion_tokens', 'max_tokens'],
  ['stop', 'stop_sequences'],
  ['response_format', 'output_config.format'],
  ['reasoning_effort', 'thinking'],
  ['user', 'metadata.user_id'],
  ['parallel_tool_calls', 'tool_choice'],
]);

/** The count of a message's input tokens: the vendor's own if it offers one, else an estimate. */
export const executeTokenCount: Execute = async ({ vendor, row, call, sink }) => {
  const request = toVendorsMessage(withoutHints(requestText(call.request), row), row);
  if (vendor.countTokens !== undefined) return await vendor.countTokens({ ...call, request }, sink);
  const task = { account: call.holder?.job?.account ?? '', bytes: request.length };
  const tokens = await counting.run(task, call.signal, () => counter.count(request, call.signal));
  return { body: JSON.stringify({ input_tokens: tokens }), usage: null };
};
