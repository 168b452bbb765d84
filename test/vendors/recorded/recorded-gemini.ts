/**
 * Answers in the wire format of Google's Gemini API, written after its reference
 * (https://ai.google.dev/api/generate-content, …/gemini-api/docs/thought-signatures, …/gemini-api/docs/thinking and
 * https://google.aip.dev/193 for errors, in the state that the types of @google/genai 2.32.0 describe, November 2026).
 */
type Json = Record<string, unknown>;

const head = { modelVersion: 'gemini-3.8-flash', responseId: 'mAitaLmkHPPlz7IPvtfUqQ4' };

const early = { promptTokenCount: 2006, totalTokenCount: 2006, cachedContentTokenCount: 1920 };

export const usageMetadata = {
  ...early,
  candidatesTokenCount: 108,
  thoughtsTokenCount: 192,
  totalTokenCount: 2306,
  promptTokensDetails: [{ modality: 'TEXT', tokenCount: 2006 }],
};

/** What the counts of every recorded answer have to become. */
export const usage = {
  prompt_tokens: 2006,
  completion_tokens: 300,
  total_tokens: 2306,
  prompt_tokens_details: { cached_tokens: 1920 },
  completion_tokens_details: { reasoning_tokens: 192 },
};

/** A partial answer with one candidate. */
export function event(parts: Json[], candidate: Json = {}, more: Json = {}): Json {
  return {
    candidates: [{ content: { parts, role: 'model' }, index: 0, ...candidate }],
    usageMetadata: early,
    ...head,
    ...more,
  };
}

/** The last of a stream. */
export function lastEvent(parts: Json[], finishReason = 'STOP', candidate: Json = {}): Json {
  return event(parts, { finishReason, ...candidate }, { usageMetadata });
}

/** Events as Google writes them. */
export function events(answers: readonly Json[]): string {
  return answers.map((answer) => `data: ${JSON.stringify(answer)}\r\n\r\n`).join('');
}

const delta = (said: Json, more: Json = {}) => ({ choices: [{ index: 0, delta: said, finish_reason: null, ...more }] });
const role = { role: 'assistant', content: '' };
const google = (signature: string) => ({ extra_content: { google: { thought_signature: signature } } });

const candidateOf = (token: string, logProbability: number) => ({ token, tokenId: 7, logProbability });
const logprob = (token: string, value: number) => ({ token, logprob: value, bytes: [...Buffer.from(token)] });

interface Recording {
  readonly sent: Json[];
  readonly frames: Json[];
}

/** Streamed answers by what is special about them: the events, and the frames that they have to become. */
export const streams: Record<string, Recording> = {
  'plain text': {
    sent: [
      event([{ text: 'Hello' }]),
      event([{ text: '! How' }]),
      event([{ text: ' are ' }]),
      lastEvent([{ text: 'you?' }]),
    ],
    frames: [
      delta({ ...role, content: 'Hello' }),
      delta({ content: '! How' }),
      delta({ content: ' are ' }),
      delta({ content: 'you?' }, { finish_reason: 'stop' }),
    ],
  },
  'multi-byte text with quotes and line breaks': {
    sent: [
      event([{ text: 'Zażółć "gęślą"\n' }]),
      event([{ text: '\\\u2028🦥' }]),
      lastEvent([{ text: '日本語 👩‍👩‍👧' }]),
    ],
    frames: [
      delta({ ...role, content: 'Zażółć "gęślą"\n' }),
      delta({ content: '\\\u2028🦥' }),
      delta({ content: '日本語 👩‍👩‍👧' }, { finish_reason: 'stop' }),
    ],
  },
  'parallel tool calls in separate events, the first signed': {
    sent: [
      event([
        {
          functionCall: { id: 'fc_1', name: 'get_weather', args: { city: 'Łódź' } },
          thoughtSignature: 'CsUBAdHtim9x',
        },
      ]),
      event([{ functionCall: { name: 'get_time', args: {} } }, { functionCall: { name: 'get_date' } }]),
      lastEvent([{ text: '' }]),
    ],
    frames: [
      delta({
        role: 'assistant',
        content: null,
        tool_calls: [
          {
            index: 0,
            id: 'fc_1',
            type: 'function',
            function: { name: 'get_weather', arguments: '{"city":"Łódź"}' },
            ...google('CsUBAdHtim9x'),
          },
        ],
      }),
      delta({
        tool_calls: [
          {
            index: 1,
            id: 'call_mAitaLmkHPPlz7IPvtfUqQ4_0_1',
            type: 'function',
            function: { name: 'get_time', arguments: '{}' },
          },
        ],
      }),
      delta({
        tool_calls: [
          {
            index: 2,
            id: 'call_mAitaLmkHPPlz7IPvtfUqQ4_0_2',
            type: 'function',
            function: { name: 'get_date', arguments: '{}' },
          },
        ],
      }),
      delta({}, { finish_reason: 'tool_calls' }),
    ],
  },
  'thoughts, and a signed end of the text': {
    sent: [
      event([{ text: '**Comparing**\n', thought: true }]),
      event([{ text: 'I look at the digits.', thought: true }, { text: '9.11' }]),
      event([{ text: ' is less' }]),
      lastEvent([{ text: '', thoughtSignature: 'EhQKEgFyz' }]),
    ],
    frames: [
      delta({ ...role, reasoning_content: '**Comparing**\n' }),
      delta({ reasoning_content: 'I look at the digits.', content: '9.11' }),
      delta({ content: ' is less' }),
      delta(google('EhQKEgFyz'), { finish_reason: 'stop' }),
    ],
  },
  logprobs: {
    sent: [
      event([{ text: 'Hello' }], {
        logprobsResult: {
          topCandidates: [{ candidates: [candidateOf('Hello', -0.25), candidateOf('Hi', -1.5)] }],
          chosenCandidates: [candidateOf('Hello', -0.25)],
        },
      }),
      lastEvent([{ text: '🦥' }], 'STOP', { logprobsResult: { chosenCandidates: [candidateOf('🦥', -0.5)] } }),
    ],
    frames: [
      delta(
        { ...role, content: 'Hello' },
        {
          logprobs: {
            content: [{ ...logprob('Hello', -0.25), top_logprobs: [logprob('Hello', -0.25), logprob('Hi', -1.5)] }],
            refusal: null,
          },
        },
      ),
      delta(
        { content: '🦥' },
        {
          logprobs: { content: [{ ...logprob('🦥', -0.5), top_logprobs: [] }], refusal: null },
          finish_reason: 'stop',
        },
      ),
    ],
  },
  'an end by the content filter': {
    sent: [
      event([{ text: 'Once' }]),
      { candidates: [{ finishReason: 'SAFETY', index: 0, safetyRatings: [] }], usageMetadata, ...head },
    ],
    frames: [delta({ ...role, content: 'Once' }), delta({}, { finish_reason: 'content_filter' })],
  },
  'a blocked prompt': {
    sent: [{ promptFeedback: { blockReason: 'PROHIBITED_CONTENT' }, usageMetadata, ...head }],
    frames: [delta(role, { finish_reason: 'content_filter' })],
  },
  'a limit used up by thinking': {
    sent: [lastEvent([], 'MAX_TOKENS', { content: { role: 'model' } })],
    frames: [delta(role, { finish_reason: 'length' })],
  },
  'several candidates': {
    sent: [
      {
        candidates: [
          { content: { parts: [{ text: 'Heads' }], role: 'model' } },
          { content: { parts: [{ text: 'Tails' }], role: 'model' }, index: 1 },
        ],
        usageMetadata: early,
        ...head,
      },
      lastEvent([], 'STOP', { index: 1 }),
      lastEvent([{ text: '!' }], 'MAX_TOKENS'),
    ],
    frames: [
      {
        choices: [
          { index: 0, delta: { ...role, content: 'Heads' }, finish_reason: null },
          { index: 1, delta: { ...role, content: 'Tails' }, finish_reason: null },
        ],
      },
      { choices: [{ index: 1, delta: {}, finish_reason: 'stop' }] },
      delta({ content: '!' }, { finish_reason: 'length' }),
    ],
  },
  'empty events and unknown fields': {
    sent: [
      { usageMetadata: early, ...head },
      event([], { unheard: 1 }),
      event([{ text: 'Hi', unheard: { of: 1.5 } }], { safetyRatings: [] }, { createTime: '2026-11-21T00:00:00Z' }),
      lastEvent([]),
    ],
    frames: [delta({ ...role, content: 'Hi' }), delta({}, { finish_reason: 'stop' })],
  },
};

/** A whole answer, and the body it has to become. */
export const answer = {
  candidates: [
    {
      content: {
        parts: [
          { text: 'I need the weather.', thought: true },
          { text: 'Zażółć "gęślą" 🦥' },
          {
            functionCall: { id: 'fc_1', name: 'get_weather', args: { city: 'Łódź' } },
            thoughtSignature: 'CsUBAdHtim9x',
          },
        ],
        role: 'model',
      },
      finishReason: 'STOP',
      avgLogprobs: -0.4,
    },
  ],
  usageMetadata,
  ...head,
};
export const answerBody = {
  choices: [
    {
      index: 0,
      message: {
        role: 'assistant',
        content: 'Zażółć "gęślą" 🦥',
        refusal: null,
        reasoning_content: 'I need the weather.',
        tool_calls: [
          {
            id: 'fc_1',
            type: 'function',
            function: { name: 'get_weather', arguments: '{"city":"Łódź"}' },
            ...google('CsUBAdHtim9x'),
          },
        ],
      },
      logprobs: null,
      finish_reason: 'tool_calls',
    },
  ],
  usage,
};

/** An error body in Google's shape. */
export function errorBody(code: number, status: string, message: string, details: Json[] = []): string {
  return JSON.stringify({ error: { code, message, status, details } });
}
