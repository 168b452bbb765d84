import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { type AIMessageChunk, HumanMessage, type ToolMessage } from '@langchain/core/messages';
import { tool } from '@langchain/core/tools';
import { ChatOpenAI, OpenAIEmbeddings } from '@langchain/openai';
import { z } from 'zod';
import { TestGateway } from '../support/gateway.ts';

const exactly = 'Reply with exactly: Hello from Sluice';
const multiply = tool(({ one, other }: { one: number; other: number }) => String(one * other), {
  name: 'multiply',
  description: 'Multiplies two numbers',
  schema: z.object({ one: z.number(), other: z.number() }),
});
const question = 'TOOL:multiply {"one":6,"other":7}';

/** The two APIs of OpenAI that LangChain speaks, and models behind them. */
const ways = [
  { api: 'chat completions', model: 'sandbox-chat', useResponsesApi: false },
  { api: 'responses', model: 'sandbox-chat', useResponsesApi: true },
  { api: 'responses', model: 'sandbox-responses', useResponsesApi: true },
];

describe('LangChain as a client', () => {
  let gateway: TestGateway;
  before(async () => {
    gateway = await TestGateway.start();
  });
  after(() => gateway.stop());

  const account = () => ({ apiKey: gateway.apiKey, maxRetries: 0, configuration: { baseURL: `${gateway.url}/v1` } });

  for (const { api, model, useResponsesApi } of ways) {
    describe(`with ${model} over ${api}`, () => {
      const chat = (): ChatOpenAI => new ChatOpenAI({ ...account(), model, useResponsesApi });

      it('a text is answered and counted', async () => {
        const answer = await chat().invoke([new HumanMessage(exactly)]);
        assert.equal(answer.text, 'Hello from Sluice');
        assertCounted(answer);
      });

      it('a stream says the same text in pieces, and what was counted', async () => {
        const pieces: AIMessageChunk[] = [];
        for await (const piece of await chat().stream(exactly)) pieces.push(piece);
        assert.notEqual(pieces.filter(({ text }) => text !== '').length, 1);
        assert.equal(pieces.map(({ text }) => text).join(''), 'Hello from Sluice');
        assertCounted(folded(pieces));
      });

      it('a tool is called, and its result answered', async () => {
        const messages = [new HumanMessage(question)];
        const asked = await chat().bindTools([multiply]).invoke(messages);
        const [call, ...others] = asked.tool_calls ?? [];
        assert.deepEqual([call?.name, call?.args, others], ['multiply', { one: 6, other: 7 }, []]);
        const result: ToolMessage = await multiply.invoke({
          ...call,
          type: 'tool_call',
          name: 'multiply',
          args: call?.args ?? {},
        });
        assert.equal(result.content, '42');
        const answer = await chat()
          .bindTools([multiply])
          .invoke([...messages, asked, result]);
        assert.match(answer.text, /\b42\b/);
        assert.deepEqual(answer.tool_calls, []);
      });

      it('a streamed call of a tool adds up to the same', async () => {
        const pieces: AIMessageChunk[] = [];
        for await (const piece of await chat().bindTools([multiply]).stream(question)) pieces.push(piece);
        const calls = folded(pieces).tool_calls?.map(({ name, args }) => ({ name, args }));
        assert.deepEqual(calls, [{ name: 'multiply', args: { one: 6, other: 7 } }]);
      });

      it('structured output fits its schema, by a schema and by a tool', async () => {
        const schema = z.object({ city: z.string(), degrees: z.number(), sky: z.enum(['clear', 'grey']) });
        for (const method of ['jsonSchema', 'functionCalling'] as const) {
          const answer = await chat().withStructuredOutput(schema, { method, name: 'forecast' }).invoke('Good morning');
          assert.deepEqual(schema.parse(answer), answer, method);
        }
      });
    });
  }

  it('a next turn over responses goes on from the stored one', async () => {
    const chat = new ChatOpenAI({ ...account(), model: 'sandbox-chat', useResponsesApi: true });
    const first = await chat.invoke('Good morning');
    const id = String(first.response_metadata.id);
    const next = await chat.invoke(exactly, { previous_response_id: id });
    assert.equal(next.text, 'Hello from Sluice');
    assert.ok(inputTokens(next) > inputTokens(first), 'the earlier turn is part of the input');
  });

  it('embeddings come one per text, in order, whole and cut short', async () => {
    const embeddings = new OpenAIEmbeddings({ ...account(), model: 'sandbox-embedding' });
    const texts = ['The quick brown fox', 'jumps over the lazy dog'];
    const vectors = await embeddings.embedDocuments(texts);
    assert.deepEqual(
      vectors.map(({ length }) => length),
      [256, 256],
    );
    assert.deepEqual(await embeddings.embedQuery(texts[1] as string), vectors[1]);
    const short = new OpenAIEmbeddings({ ...account(), model: 'sandbox-embedding', dimensions: 64 });
    assert.equal((await short.embedQuery('fox')).length, 64);
  });
});

function folded(pieces: readonly AIMessageChunk[]): AIMessageChunk {
  return pieces.reduce((sum, piece) => sum.concat(piece));
}

function inputTokens({ usage_metadata: usage }: { usage_metadata?: { input_tokens: number } | undefined }): number {
  return usage?.input_tokens ?? Number.NaN;
}

function assertCounted(answer: { usage_metadata?: AIMessageChunk['usage_metadata'] }): void {
  const { input_tokens: input = 0, output_tokens: output = 0, total_tokens: total = 0 } = answer.usage_metadata ?? {};
  assert.ok(input > 0 && output > 0, 'input and output are counted');
  assert.equal(total, input + output);
}
