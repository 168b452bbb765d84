import { splitTokens } from '../tokens.ts';
import { withinTime } from '../within-time.ts';
import { lastUserText } from './chat-message.ts';
import type { ChatRequest } from './chat-request.ts';
import { answerObject, answerSchema } from './json-answer.ts';
import { type PlannedCall, planCalls } from './planned-calls.ts';
import { answerText, type TextAnswer } from './text-answer.ts';
import type { Tool } from './tool-use.ts';

/** A tool call; the tool's name counts as one token, its arguments as the rest. */
export interface ToolCall {
  id: string;
  kind: Tool['kind'];
  name: string;
  input: readonly string[];
}

/** One choice of an answer, as tokens. */
export interface ChoiceAnswer {
  reasoning: readonly string[];
  /** Null if the answer consists of tool calls. */
  content: readonly string[] | null;
  calls: readonly ToolCall[];
  finishReason: 'stop' | 'length' | 'tool_calls' | 'function_call';
  /** The stop text that ended it, if any; returned in `stop_reason`, as vLLM does. */
  stopText?: string;
}

/** An answer before it is serialized. */
export interface ChatAnswer {
  choices: readonly ChoiceAnswer[];
  /** The pace that the prompt requests; undefined if none. */
  tokensPerSecond: number | undefined;
}

/**
 * Composes the answer to a request: the same request always gets the same answer (except ids).
 * @param id of the completion; the ids of tool calls are derived from it.
 * @throws WireError 400 for a schema or a pattern that cannot be followed, or takes too long.
 */
export function composeAnswer(request: ChatRequest, id: string): ChatAnswer {
  const followsSchemas = request.tools.allowed.length > 0 || request.responseFormat.type === 'json_schema';
  return followsSchemas ? withinTime(() => compose(request, id)) : compose(request, id);
}

function compose(request: ChatRequest, id: string): ChatAnswer {
  const planned = planCalls(request);
  const reasoning = request.model.reasoning ? reason(request) : [];
  let tokensPerSecond: number | undefined;
  const choices: ChoiceAnswer[] = [];
  for (let index = 0; index < request.choices; index += 1) {
    if (planned.length > 0) {
      choices.push(limitCalls(request, reasoning, toCalls(planned, `${id}${index}`)));
    } else {
      const answer = composeContent(request, index);
      tokensPerSecond = answer.tokensPerSecond;
      choices.push(limitContent(request, reasoning, answer.tokens));
    }
  }
  return { choices, tokensPerSecond };
}

function composeContent(request: ChatRequest, choice: number): TextAnswer {
  const format = request.responseFormat;
  if (format.type === 'json_schema') return { tokens: splitTokens(answerSchema(format.schema)) };
  if (format.type === 'json_object') return { tokens: splitTokens(answerObject(request.messages)) };
  return answerText(request, choice);
}

function toCalls(planned: readonly PlannedCall[], id: string): ToolCall[] {
  return planned.map(({ tool, input }, index) => {
    return { id: `call_${id}${index}`, kind: tool.kind, name: tool.name, input: splitTokens(input) };
  });
}

const thoughts = [
  ' A stand-in needs no thought to answer that.',
  ' Still, I look at the wording once more.',
  ' Nothing in it is unclear.',
];
const thoughtsByEffort: Readonly<Record<string, number>> = { minimal: 0, low: 1, high: 3, xhigh: 3, max: 3 };

function reason(request: ChatRequest): readonly string[] {
  if (request.reasoningEffort === 'none') return [];
  const length = lastUserText(request.messages).length;
  const more = thoughts.slice(0, thoughtsByEffort[request.reasoningEffort] ?? 2);
  return splitTokens(`The user's text is ${length} characters long.${more.join('')}`);
}

function limitContent(
  request: ChatRequest,
  allReasoning: readonly string[],
  allContent: readonly string[],
): ChoiceAnswer {
  const reasoning = take(allReasoning, request.maximumTokens);
  const content = take(allContent, request.maximumTokens - reasoning.length);
  // A stop text counts only if it was generated: text beyond the limit never was.
  const stopped = request.stop.length === 0 ? undefined : truncateAtStop(content, request.stop);
  if (stopped !== undefined) return { reasoning, calls: [], finishReason: 'stop', ...stopped };
  const whole = reasoning.length + content.length === allReasoning.length + allContent.length;
  return { reasoning, content, calls: [], finishReason: whole ? 'stop' : 'length' };
}

/** The tokens before the first stop text, the last one possibly truncated, and that text; undefined if none occurs. */
function truncateAtStop(
  tokens: readonly string[],
  stop: readonly string[],
): Required<Pick<ChoiceAnswer, 'content' | 'stopText'>> | undefined {
  const text = tokens.join('');
  const found = stop.map((stopText) => ({ stopText, start: text.indexOf(stopText) })).filter(({ start }) => start >= 0);
  if (found.length === 0) return undefined;
  const first = found.reduce((best, next) => (next.start < best.start ? next : best));
  let left = first.start;
  const kept: string[] = [];
  for (const token of tokens) {
    if (left <= 0) break;
    kept.push(token.slice(0, left));
    left -= token.length;
  }
  return { content: kept, stopText: first.stopText };
}

function limitCalls(request: ChatRequest, allReasoning: readonly string[], calls: readonly ToolCall[]): ChoiceAnswer {
  const reasoning = take(allReasoning, request.maximumTokens);
  let left = request.maximumTokens - reasoning.length;
  let whole = true;
  const kept: ToolCall[] = [];
  for (const call of calls) {
    if (left > 0) kept.push({ ...call, input: take(call.input, left - 1) });
    left -= 1 + call.input.length;
    whole = left >= 0;
  }
  if (!whole) return { reasoning, content: null, calls: kept, finishReason: 'length' };
  const finishReason = calls[0]?.kind === 'legacy' ? 'function_call' : 'tool_calls';
  return { reasoning, content: null, calls: kept, finishReason };
}

function take(tokens: readonly string[], count: number): readonly string[] {
  return tokens.length <= count ? tokens : tokens.slice(0, Math.max(0, count));
}
