import type { ChatAnswer, ChoiceAnswer, ToolCall } from './chat-answer.ts';
import type { ChatRequest } from './chat-request.ts';
import { tokenLogprob } from './logprobs.ts';
import type { Usage } from './usage.ts';

/** The data shared by all chunks of one completion, and the facts that its serialization depends on. */
export interface Completion {
  id: string;
  /** Unix seconds. */
  created: number;
  request: ChatRequest;
  answer: ChatAnswer;
  usage: Usage;
}

/**
 * The body of a non-streamed answer: CreateChatCompletionResponse as JSON text.
 * @param reportsUsage `false`: it is left out
 */
export function completionBody({ id, created, request, answer, usage }: Completion, reportsUsage = true): string {
  return JSON.stringify({
    id,
    object: 'chat.completion',
    created,
    model: request.model.id,
    choices: answer.choices.map((choice, index) => ({
      index,
      message: toMessage(choice),
      logprobs: toLogprobs(choice, request.topLogprobs),
      finish_reason: choice.finishReason,
      ...(choice.stopText !== undefined && { stop_reason: choice.stopText }),
    })),
    ...(reportsUsage && { usage }),
    service_tier: 'default',
    system_fingerprint: 'fp_sandbox',
  });
}

function toMessage(choice: ChoiceAnswer) {
  const message = {
    role: 'assistant',
    content: choice.content === null ? null : choice.content.join(''),
    ...(choice.reasoning.length > 0 && { reasoning_content: choice.reasoning.join('') }),
    refusal: null,
    annotations: [],
  };
  const [first] = choice.calls;
  if (first === undefined) return message;
  if (first.kind === 'legacy') return { ...message, function_call: toFunction(first) };
  return { ...message, tool_calls: choice.calls.map(toToolCall) };
}

function toToolCall(call: ToolCall) {
  if (call.kind !== 'custom') return { id: call.id, type: 'function', function: toFunction(call) };
  return { id: call.id, type: 'custom', custom: { name: call.name, input: call.input.join('') } };
}

function toFunction(call: ToolCall) {
  return { name: call.name, arguments: call.input.join('') };
}

function toLogprobs(choice: ChoiceAnswer, topLogprobs: number | undefined) {
  if (topLogprobs === undefined || choice.content === null) return null;
  return { content: choice.content.map((token) => tokenLogprob(token, topLogprobs)), refusal: null };
}
