import assert from 'node:assert/strict';
import { createAnthropic } from '@ai-sdk/anthropic';
import { createOpenAI } from '@ai-sdk/openai';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { APICallError, generateText, Output, stepCountIs, streamText, tool } from 'ai';
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

const baseURL = `${baseUrl}/v1`;
const compatible = { baseURL, name: 'sluice', includeUsage: true, supportsStructuredOutputs: true };
const providers = {
  'openai-compatible': (key) => createOpenAICompatible({ ...compatible, apiKey: key }),
  'openai chat': (key) => createOpenAI({ baseURL, apiKey: key }).chat,
  'openai responses': (key) => createOpenAI({ baseURL, apiKey: key }),
  anthropic: (key) => createAnthropic({ baseURL, apiKey: key }),
};
const tools = { multiply: tool(multiply) };

for (const [api, provider] of Object.entries(providers)) {
  const ask = { model: provider(apiKey)('sandbox-chat'), maxRetries: 0, maxOutputTokens: 1000 };
  const toolAsk = { ...ask, tools, prompt: question, stopWhen: stepCountIs(3) };
  const structured = { ...ask, prompt: 'Good morning', output: Output.object({ schema: forecast }) };
  await runCases(api, {
    held: async () => {
      const { text, usage, finishReason } = await generateText({ ...ask, prompt: exactly });
      assert.deepEqual([text, finishReason], [said, 'stop']);
      assert.ok(usage.outputTokens > 0);
    },
    streamed: async () => {
      const run = streamText({ ...ask, prompt: exactly });
      assertSaid(await collect(run.textStream));
      assert.ok((await run.usage).outputTokens > 0);
    },
    'tool turn': async () => {
      const { text, steps } = await generateText(toolAsk);
      assert.equal(steps.length, 2);
      assert.match(text, /\b42\b/);
    },
    'streamed tool turn': async () => {
      const run = streamText(toolAsk);
      await run.consumeStream();
      assert.match(await run.text, /\b42\b/);
    },
    'structured output': async () => {
      assertForecast((await generateText(structured)).output);
      const run = streamText(structured);
      await run.consumeStream();
      assertForecast(await run.output);
    },
    error: async () => {
      const unknown = await failure(() =>
        generateText({ ...ask, model: provider(apiKey)('no-such-model'), prompt: exactly }),
      );
      assert.ok(APICallError.isInstance(unknown), String(unknown));
      assert.equal(unknown.statusCode, 404);
      assert.match(unknown.message, /no-such-model/);
      const refused = await failure(() =>
        generateText({ ...ask, model: provider(wrongKey)('sandbox-chat'), prompt: exactly }),
      );
      assert.equal(refused.statusCode, 401);
    },
  });
}
