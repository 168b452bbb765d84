import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { createAnthropic } from '@ai-sdk/anthropic';
import { createOpenAI } from '@ai-sdk/openai';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { embedMany, generateText, type LanguageModel, Output, stepCountIs, streamText, tool } from 'ai';
import { z } from 'zod';
import { TestGateway } from '../support/gateway.ts';

const exactly = 'Reply with exactly: Hello from Sluice';
const tools = {
  multiply: tool({
    description: 'Multiplies two numbers',
    inputSchema: z.object({ one: z.number(), other: z.number() }),
    execute: ({ one, other }) => one * other,
  }),
};
const question = 'TOOL:multiply {"one":6,"other":7}';

describe('the AI SDK as a client', () => {
  let gateway: TestGateway;
  before(async () => {
    gateway = await TestGateway.start();
  });
  after(() => gateway.stop());

  const account = () => ({ apiKey: gateway.apiKey, baseURL: `${gateway.url}/v1` });
  const compatible = () =>
    createOpenAICompatible({ ...account(), name: 'sluice', includeUsage: true, supportsStructuredOutputs: true });
  const ways: Record<string, () => LanguageModel> = {
    '@ai-sdk/openai-compatible': () => compatible()('sandbox-chat'),
    '@ai-sdk/openai over chat completions': () => createOpenAI(account()).chat('sandbox-chat'),
    '@ai-sdk/openai over responses': () => createOpenAI(account())('sandbox-chat'),
    '@ai-sdk/openai over responses, native': () => createOpenAI(account())('sandbox-responses'),
    '@ai-sdk/anthropic': () => createAnthropic(account())('sandbox-chat'),
  };

  for (const [way, model] of Object.entries(ways)) {
    describe(`with ${way}`, () => {
      const asked = () => ({ model: model(), maxRetries: 0, maxOutputTokens: 1000 });

      it('a text is answered and counted', async () => {
        const { text, usage, finishReason } = await generateText({ ...asked(), prompt: exactly });
        assert.deepEqual([text, finishReason], ['Hello from Sluice', 'stop']);
        assertCounted(usage);
      });

      it('a stream says the same text in pieces, and what was counted', async () => {
        const { run, pieces } = await readStream({ ...asked(), prompt: exactly });
        assert.notEqual(pieces.length, 1);
        assert.deepEqual([pieces.join(''), await run.finishReason], ['Hello from Sluice', 'stop']);
        assertCounted(await run.usage);
      });

      it('a tool is called, and its result answered', async () => {
        const { steps, text } = await generateText({ ...asked(), tools, prompt: question, stopWhen: stepCountIs(3) });
        assertMultiplied(steps, text);
      });

      it('a streamed call of a tool and the answer to its result are the same', async () => {
        const { run } = await readStream({ ...asked(), tools, prompt: question, stopWhen: stepCountIs(3) });
        assertMultiplied(await run.steps, await run.text);
      });

      it('structured output fits its schema, whole and streamed', async () => {
        const schema = z.object({ city: z.string(), degrees: z.number(), sky: z.enum(['clear', 'grey']) });
        const request = { ...asked(), prompt: 'Good morning', output: Output.object({ schema }) };
        const { output } = await generateText(request);
        assert.deepEqual(schema.parse(output), output);
        const { run } = await readStream(request);
        const streamed = await run.output;
        assert.deepEqual(schema.parse(streamed), streamed);
      });
    });
  }

  it('embeddings come one per text, in order, from both of OpenAI’s providers', async () => {
    const values = ['The quick brown fox', 'jumps over the lazy dog'];
    const own = await embedMany({ model: createOpenAI(account()).embedding('sandbox-embedding'), values });
    assert.deepEqual(
      own.embeddings.map(({ length }) => length),
      [256, 256],
    );
    assert.notDeepEqual(own.embeddings[0], own.embeddings[1]);
    assert.notEqual(own.usage.tokens, 0);
    const other = await embedMany({ model: compatible().embeddingModel('sandbox-embedding'), values });
    assert.deepEqual(other.embeddings, own.embeddings);
  });
});

/** Reads a stream to its end. The SDK only writes a stream's errors to the console: here they fail the test. */
async function readStream(request: Parameters<typeof streamText>[0]) {
  const errors: unknown[] = [];
  const run = streamText({ ...request, onError: ({ error }) => void errors.push(error) });
  const pieces: string[] = [];
  for await (const piece of run.textStream) pieces.push(piece);
  assert.deepEqual(errors, []);
  return { run, pieces };
}

function assertCounted({
  inputTokens = 0,
  outputTokens = 0,
}: {
  inputTokens?: number | undefined;
  outputTokens?: number | undefined;
}): void {
  assert.ok(inputTokens > 0 && outputTokens > 0, 'input and output are counted');
}

function assertMultiplied(
  steps: readonly { toolCalls: readonly { input: unknown }[]; toolResults: readonly { output: unknown }[] }[],
  text: string,
): void {
  assert.deepEqual(
    steps.map(({ toolCalls, toolResults }) => [
      toolCalls.map(({ input }) => input),
      toolResults.map(({ output }) => output),
    ]),
    [
      [[{ one: 6, other: 7 }], [42]],
      [[], []],
    ],
  );
  assert.match(text, /\b42\b/);
}
