import { parseExact, stringifyExact } from '../../shared/capabilities/exact-json.ts';
import { ApiError } from '../../shared/errors.ts';
import { requestText } from './request-body.ts';
import { isObject, type JsonObject } from './support/json-object.ts';
import type { VendorCall } from './vendor.ts';

/**
 * The words by which vendors refuse a conversation that ends with the model's own answer: Claude from 4.6 on, and older ones while
 * they think (https://platform.claude.com/docs/en/about-claude/models/migration-guide), also at Bedrock and OpenRouter; Gemini from
 * 3.5 Flash-Lite on (https://github.com/LibreChat-AI/agents/pull/323); Mistral; DeepSeek's reasoner; llama.cpp, which continues one
 * answer unless the model thinks (https://github.com/ggml-org/llama.cpp/pull/15404).
 */
const refusesLastAnswer = new RegExp(
  [
    'assistant message prefill',
    'assistant response prefill',
    '2 or more assistant messages at the end',
    'must end with a user (?:message|turn|role)',
    'final `assistant` message must start with a thinking block',
    'ending with a model turn',
    'requests ends? with a user role',
    'Expected last role User',
    'last message of \\S+ must be a user message',
  ].join('|'),
  'i',
);

/** What the user says behind an answer that the model is to go on from. */
const wordAtEnd: JsonObject = { role: 'user', content: 'Continue.' };

/**
 * The chat to send in place of one that is refused because it ends with an answer; undefined if that is not why. OpenAI's models give
 * their next answer to such a conversation, which agents make at their last step, or to have an answer once more as JSON. Where the
 * caller wants the answer itself continued, as in a message, its vendor's refusal stands.
 */
export function withUserAtEnd(error: unknown, { request, isPrefilled }: VendorCall): string | undefined {
  if (isPrefilled || !(error instanceof ApiError) || !refusesLastAnswer.test(error.message)) return undefined;
  const chat = parseExact(requestText(request));
  if (!isObject(chat) || !Array.isArray(chat.messages) || !endsWithAnswer(chat.messages)) return undefined;
  return stringifyExact({ ...chat, messages: [...chat.messages, wordAtEnd] });
}

/** Whether all that is behind the assistant's last message are instructions, and it is neither a call nor to be continued. */
function endsWithAnswer(messages: readonly unknown[]): boolean {
  const last = messages.filter(isObject).findLast(({ role }) => role !== 'system' && role !== 'developer');
  if (last?.role !== 'assistant' || last.prefix === true || last.partial === true) return false;
  return !Array.isArray(last.tool_calls) || last.tool_calls.length === 0;
}
