import assert from 'node:assert/strict';
import { ChatAnthropic } from '@langchain/anthropic';
import { HumanMessage } from '@langchain/core/messages';
import { tool } from '@langchain/core/tools';
import { ChatOpenAI } from '@langchain/openai';
import {
  apiKey,
  assertForecast,
  assertSaid,
  baseUrl,
  collect,
  exactly,
  failure,
  forecast,
  multiply,
  question,
  runCases,
  said,
  wrongKey,
} from '../cases.mjs';

function openAi(useResponsesApi) {
  return (model, key) =>
    new ChatOpenAI({
      model,
      apiKey: key,
      useResponsesApi,
      maxRetries: 0,
      configuration: { baseURL: `${baseUrl}/v1` },
    });
}

const apis = {
  'openai chat': { chat: openAi(false), model: 'sandbox-chat', method: 'jsonSchema' },
  'openai responses': { chat: openAi(true), model: 'sandbox-chat', method: 'jsonSchema' },
  'openai native responses': { chat: openAi(true), model: 'sandbox-responses', method: 'jsonSchema' },
  anthropic: {
    chat: (model, key) =>
      new ChatAnthropic({ model, apiKey: key, anthropicApiUrl: baseUrl, maxRetries: 0, maxTokens: 1000 }),
    model: 'sandbox-chat',
    method: 'functionCalling',
  },
};

const multiplyTool = tool(multiply.execute, { ...multiply, schema: multiply.inputSchema });

for (const [api, { chat, model, method }] of Object.entries(apis)) {
  await runCases(api, {
    held: async () => {
      const answer = await chat(model, apiKey).invoke(exactly);
      assert.equal(answer.text, said);
      assert.ok(answer.usage_metadata.output_tokens > 0);
    },
    streamed: async () => {
      const pieces = await collect(await chat(model, apiKey).stream(exactly));
      assertSaid(pieces.map(({ text }) => text));
      assert.ok(pieces.reduce((sum, piece) => sum.concat(piece)).usage_metadata.output_tokens > 0);
    },
    'tool turn': async () => {
      const messages = [new HumanMessage(question)];
      const bound = chat(model, apiKey).bindTools([multiplyTool]);
      const asked = await bound.invoke(messages);
      assert.equal(asked.tool_calls.length, 1);
      const result = await multiplyTool.invoke({ ...asked.tool_calls[0], type: 'tool_call' });
      const answer = await bound.invoke([...messages, asked, result]);
      assert.match(answer.text, /\b42\b/);
    },
    'structured output': async () => {
      const structured = chat(model, apiKey).withStructuredOutput(forecast, { name: 'forecast', method });
      assertForecast(await structured.invoke('Good morning'));
    },
    error: async () => {
      const unknown = await failure(() => chat('no-such-model', apiKey).invoke(exactly));
      assert.equal(unknown.status, 404, String(unknown));
      const refused = await failure(() => chat(model, wrongKey).invoke(exactly));
      assert.equal(refused.status, 401, String(refused));
    },
  });
}
