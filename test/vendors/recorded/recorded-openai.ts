/**
 * Answers in OpenAI's wire format, written after its API reference (https://platform.openai.com/docs/api-reference/chat and
 * …/chat-streaming, in the state that the types of openai-node 6.49.0 describe, November 2026). `reasoning_content` is not
 * OpenAI's: DeepSeek (https://api-docs.deepseek.com/guides/reasoning_model) and many others send it.
 */
const head = {
  id: 'chatcmpl-123',
  object: 'chat.completion.chunk',
  created: 1694268190,
  model: 'gpt-4o-mini-2024-07-18',
};
const fingerprint = { service_tier: 'default', system_fingerprint: 'fp_44709d6fcb' };

export const usage = {
  prompt_tokens: 2006,
  completion_tokens: 300,
  total_tokens: 2306,
  prompt_tokens_details: { cached_tokens: 1920, audio_tokens: 0 },
  completion_tokens_details: {
    reasoning_tokens: 192,
    audio_tokens: 0,
    accepted_prediction_tokens: 0,
    rejected_prediction_tokens: 0,
  },
};

interface Choice {
  index?: number;
  delta: Record<string, unknown>;
  logprobs?: unknown;
  finish_reason?: string | null;
  [more: string]: unknown;
}

/** The chunk as the vendor sends it. */
export function chunk(choices: Choice[], more: Record<string, unknown> = {}): Record<string, unknown> {
  const full = choices.map((choice) => ({ index: 0, logprobs: null, finish_reason: null, ...choice }));
  return { ...head, ...fingerprint, choices: full, usage: null, ...more };
}

/** The data of the frame that a chunk has to become. */
export function frameOf(sent: Record<string, unknown>): Record<string, unknown> {
  const { id: _id, object: _object, created: _created, model: _model, usage: _usage, ...rest } = sent;
  return rest;
}

export const usageChunk = chunk([], { usage });

/** Events as OpenAI writes them. */
export function events(chunks: readonly Record<string, unknown>[], end = 'data: [DONE]\n\n'): string {
  return chunks.map((each) => `data: ${JSON.stringify(each)}\n\n`).join('') + end;
}

const role = chunk([{ delta: { role: 'assistant', content: '', refusal: null } }]);
const token = (content: string, more: Partial<Choice> = {}) => chunk([{ delta: { content }, ...more }]);
const finish = (reason: string) => chunk([{ delta: {}, finish_reason: reason }]);
const toolCall = (call: Record<string, unknown>) => chunk([{ delta: { tool_calls: [call] } }]);

function logprob(text: string, value: number): Record<string, unknown> {
  const entry = { token: text, logprob: value, bytes: [...Buffer.from(text)] };
  return { content: [{ ...entry, top_logprobs: [entry] }], refusal: null };
}

/** Streamed answers by what is special about them: the chunks in the order they are sent, without the usage chunk. */
export const streams: Record<string, Record<string, unknown>[]> = {
  'plain text': [role, token('Hello'), token('!'), token(' How'), token(' are you?'), finish('stop')],
  'text with quotes, line breaks and backslashes': [
    role,
    token('a'),
    token('"\n'),
    token('\\'),
    token('\u2028'),
    finish('stop'),
  ],
  'multi-byte text': [role, token('Zażółć '), token('gęślą 🦥'), token('日本語'), token('👩‍👩‍👧'), finish('stop')],
  'tool calls in fragments': [
    chunk([{ delta: { role: 'assistant', content: null } }]),
    toolCall({ index: 0, id: 'call_abc', type: 'function', function: { name: 'get_weather', arguments: '' } }),
    toolCall({ index: 0, function: { arguments: '{"city' } }),
    toolCall({ index: 0, function: { arguments: '":"Łódź"}' } }),
    toolCall({ index: 1, id: 'call_def', type: 'function', function: { name: 'get_time', arguments: '' } }),
    toolCall({ index: 1, function: { arguments: '{}' } }),
    finish('tool_calls'),
  ],
  logprobs: [
    role,
    token('Hello', { logprobs: logprob('Hello', -0.31725305) }),
    token('!', { logprobs: logprob('!', -0.02380986) }),
    finish('stop'),
  ],
  'a refusal': [
    chunk([{ delta: { role: 'assistant', content: null, refusal: '' } }]),
    chunk([{ delta: { refusal: "I'm sorry," } }]),
    chunk([{ delta: { refusal: " I can't help with that." } }]),
    finish('stop'),
  ],
  'reasoning content': [
    chunk([{ delta: { role: 'assistant', content: null, reasoning_content: '' } }]),
    chunk([{ delta: { content: null, reasoning_content: 'Let me think' } }]),
    chunk([{ delta: { content: '9.11', reasoning_content: null } }]),
    chunk([{ delta: { content: ' is less', reasoning_content: null } }]),
    finish('stop'),
  ],
  'an end by the content filter': [
    chunk([], { prompt_filter_results: [{ prompt_index: 0, content_filter_results: { hate: { filtered: false } } }] }),
    role,
    token('Once'),
    chunk([{ delta: {}, finish_reason: 'content_filter', content_filter_results: { hate: { filtered: true } } }]),
  ],
  'several choices': [
    chunk([{ index: 0, delta: { role: 'assistant', content: '' } }]),
    chunk([{ index: 1, delta: { role: 'assistant', content: '' } }]),
    chunk([{ index: 0, delta: { content: 'Heads' } }]),
    chunk([{ index: 1, delta: { content: 'Tails' } }]),
    chunk([{ index: 1, delta: {}, finish_reason: 'stop' }]),
    chunk([{ index: 0, delta: {}, finish_reason: 'length' }]),
  ],
  'unknown fields': [
    chunk([{ delta: { role: 'assistant', content: '' }, unheard: { of: 1.5 } }], { obfuscation: 'xK2', novel: [1e-7] }),
    chunk([{ delta: { content: 'Hi' } }], { obfuscation: 'p', novel: null }),
    chunk([{ delta: { content: ' you' } }], { obfuscation: 'q19', novel: null }),
    finish('stop'),
  ],
};

/** A whole completion, and the body it has to become. */
export const completionBody = {
  choices: [
    {
      index: 0,
      message: { role: 'assistant', content: 'Zażółć "gęślą" jaźń 🦥', refusal: null, annotations: [] },
      logprobs: null,
      finish_reason: 'stop',
    },
  ],
  usage,
  ...fingerprint,
  unheard: { of: 1.5 },
};
export const completion = { ...head, object: 'chat.completion', ...completionBody };

/** An error body in OpenAI's shape (https://platform.openai.com/docs/guides/error-codes). */
export function errorBody(
  message: string,
  code: string | null,
  type = 'invalid_request_error',
  param: string | null = null,
) {
  return JSON.stringify({ error: { message, type, param, code } });
}
