import type { ServerResponse } from 'node:http';
import { createAnthropic } from '../../../workers/vendors/anthropic/anthropic.ts';
import { createBedrock } from '../../../workers/vendors/bedrock/bedrock.ts';
import { createGemini } from '../../../workers/vendors/gemini/gemini.ts';
import { createOpenAiDialect } from '../../../workers/vendors/openai/dialect.ts';
import { madeUpModel } from '../../support/routed-model.ts';
import { sendStream } from '../contracts/fixture-vendor.ts';
import { showsHostileAnswers } from '../contracts/hostile-answers.ts';
import * as claude from '../recorded/recorded-anthropic.ts';
import * as converse from '../recorded/recorded-bedrock.ts';
import { event, lastEvent } from '../recorded/recorded-gemini.ts';
import { recorded, usage } from '../recorded/recorded-responses.ts';

const chats = ['chat.completions', 'completions', 'messages', 'responses'] as const;

/** Events as most vendors write them: those that are no objects, too. */
function sendEvents(response: ServerResponse, events: readonly unknown[]): void {
  sendStream(response, [events.map((each) => `data: ${JSON.stringify(each)}\n\n`).join('')]);
}

const logprob = { token: 'a', logprob: -1, bytes: [97] };
const signed = { extra_content: { google: { thought_signature: 'x' } } };
const said = {
  ...{ role: 'assistant', content: 'Ruby', reasoning_content: 'Hm.', refusal: 'no', ...signed },
  thinking_blocks: [
    { type: 'thinking', thinking: 'Hm.', signature: 's' },
    { type: 'redacted_thinking', data: 'x' },
  ],
  thinking_offsets: [0, 2],
  annotations: [{ type: 'url_citation', url_citation: { url: 'u', title: 't', start_index: 0, end_index: 1 } }],
  audio: { id: 'a', data: 'AAAA', transcript: 'x', expires_at: 1 },
  function_call: { name: 'f', arguments: '{}' },
  tool_calls: [{ index: 0, id: 'a', type: 'function', function: { name: 'f', arguments: '{}' }, ...signed }],
};
const choice = {
  ...{ index: 0, finish_reason: 'stop', stop_reason: 'x' },
  logprobs: { content: [{ ...logprob, top_logprobs: [logprob] }], refusal: null },
};
const rest = {
  ...{ id: 'c', object: 'chat.completion', created: 1, model: 'm', service_tier: 'default', system_fingerprint: 'x' },
  usage: {
    ...{ prompt_tokens: 1, completion_tokens: 2, total_tokens: 3 },
    prompt_tokens_details: { cached_tokens: 1, audio_tokens: 0 },
    completion_tokens_details: { reasoning_tokens: 1 },
  },
};

showsHostileAnswers('the OpenAI dialect', {
  create: (baseUrl) => createOpenAiDialect({ name: 'near', baseUrl, apiKey: 'sk-test' }),
  row: madeUpModel({ id: 'm', capability: 'chat' }),
  whole: { ...rest, choices: [{ ...choice, message: said }] },
  events: [{ ...rest, choices: [{ ...choice, delta: said }] }, { choices: [] }],
  sendEvents,
  endpoints: chats,
});

const native = recorded('reasoning and a function call');
const briefly = { id: 'resp_1', object: 'response', error: null, incomplete_details: null, service_tier: 'default' };
const nativeEnd = { ...briefly, status: 'completed', output: native.output, usage };
const nativeEvents = [...native.events, { type: 'response.completed', response: nativeEnd }];

showsHostileAnswers('the Responses API', {
  create: (baseUrl) => createOpenAiDialect({ name: 'openai', baseUrl, apiKey: 'sk-test' }),
  row: madeUpModel({ id: 'm', capability: 'chat', responses: true }),
  whole: nativeEnd,
  events: nativeEvents,
  sendEvents,
  endpoints: ['responses'],
});

const message = claude.messageOf(
  [
    claude.thinking('Hm.', 's'),
    { type: 'redacted_thinking', data: 'x' },
    claude.text('Ruby'),
    claude.toolUse('toolu_1', 'f', { a: 1 }),
  ],
  'tool_use',
);

showsHostileAnswers('Anthropic', {
  create: (baseUrl) => createAnthropic({ name: 'anthropic', baseUrl, apiKey: 'sk-ant-test' }),
  row: madeUpModel({ id: 'm', capability: 'chat' }, 'anthropic'),
  whole: message,
  events: claude.eventsOf(message, 100),
  sendEvents,
  endpoints: ['messages', 'responses'],
});

const parts = [
  { text: 'Hm.', thought: true, thoughtSignature: 'a' },
  { text: 'Ruby', thoughtSignature: 'b' },
  { inlineData: { mimeType: 'image/png', data: 'AAAA' } },
  { functionCall: { id: 'a', name: 'f', args: { a: 1 } }, thoughtSignature: 'c' },
];
const grounded = {
  groundingMetadata: {
    webSearchQueries: ['x'],
    groundingChunks: [{ web: { uri: 'u', title: 't' } }],
    groundingSupports: [{ segment: { startIndex: 0, endIndex: 1, text: 'R' }, groundingChunkIndices: [0] }],
  },
  logprobsResult: {
    chosenCandidates: [{ token: 'a', tokenId: 1, logProbability: -1 }],
    topCandidates: [{ candidates: [{ token: 'a', tokenId: 1, logProbability: -1 }] }],
  },
};

showsHostileAnswers('Gemini', {
  create: (baseUrl) => createGemini({ name: 'gemini', baseUrl, apiKey: 'AIzaSyTest0123456789abcdefghijklm' }),
  row: madeUpModel({ id: 'm', capability: 'chat' }, 'gemini'),
  whole: lastEvent(parts, 'STOP', grounded),
  events: [event(parts), lastEvent([], 'STOP', grounded)],
  sendEvents,
  endpoints: ['messages', 'responses'],
});

const answer = converse.answerOf(
  [
    converse.thought('Hm.', 's'),
    converse.redacted('eA=='),
    converse.text('Ruby'),
    converse.toolUse('a', 'f', { a: 1 }),
  ],
  'tool_use',
);

showsHostileAnswers('Bedrock', {
  create: (baseUrl) => createBedrock({ name: 'bedrock', baseUrl, apiKey: 'AKIA0123456789:secret' }),
  row: madeUpModel({ id: 'm', capability: 'chat' }, 'bedrock'),
  whole: JSON.parse(converse.toJson(answer)),
  events: JSON.parse(converse.toJson(converse.eventsOf(answer, 100))),
  sendEvents: (response, events) => {
    const messages = events.flatMap((each) => Object.entries(Object(each)));
    converse.sendEvents(
      response,
      messages.map(([type, body]) => converse.eventMessage(type, JSON.stringify(body))),
    );
  },
  endpoints: ['messages', 'responses'],
});
