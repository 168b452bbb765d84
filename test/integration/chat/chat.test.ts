import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import fc from 'fast-check';
import type OpenAI from 'openai';
import { held, streamed, streamedText } from '../../support/chat-requests.ts';
import { saidInChunks, saidWhole } from '../../support/fold-chunks.ts';
import { TestGateway } from '../../support/gateway.ts';
import { readSse, sseEvents, textOf } from '../../support/sse-events.ts';

type Message = OpenAI.Chat.ChatCompletionMessageParam;

describe('POST /v1/chat/completions', () => {
  let gateway: TestGateway;
  let client: OpenAI;
  before(async () => {
    gateway = await TestGateway.start();
    client = gateway.client();
  });
  after(() => gateway.stop());

  it('POST /v1/chat/completions returns a chat.completion of the requested model', async () => {
    const { data, response } = await client.chat.completions
      .create(held('Reply with exactly: Hello there'))
      .withResponse();
    assert.equal(data.object, 'chat.completion');
    assert.equal(data.model, 'sandbox-chat');
    assert.match(data.id, /^chatcmpl-[0-9a-f]{32}$/);
    assert.equal(response.headers.get('x-request-id'), data.id.replace('chatcmpl-', 'job_'));
    assert.match(response.headers.get('openai-processing-ms') ?? '', /^\d+$/);
    assert.match(response.headers.get('x-ratelimit-limit-requests') ?? '', /^\d+$/);
    assert.match(response.headers.get('x-ratelimit-remaining-requests') ?? '', /^\d+$/);
    assert.ok(Math.abs(data.created - Date.now() / 1000) < 60);
    const [choice] = data.choices;
    assert.equal(choice?.message.role, 'assistant');
    assert.equal(choice?.message.content, 'Hello there');
    assert.equal(choice?.finish_reason, 'stop');
    assert.ok(data.usage && data.usage.prompt_tokens > 0 && data.usage.completion_tokens === 2);
    assert.equal(data.usage.total_tokens, data.usage.prompt_tokens + 2);
  });

  it('POST /v1/chat/completions streams chunks with one id, role first, finish reason last and no usage by default', async () => {
    const chunks: OpenAI.Chat.ChatCompletionChunk[] = [];
    for await (const chunk of await client.chat.completions.create(streamed('WORDS:20'))) chunks.push(chunk);
    assert.equal(new Set(chunks.map(({ id }) => id)).size, 1);
    assert.ok(chunks.every(({ object, model }) => object === 'chat.completion.chunk' && model === 'sandbox-chat'));
    assert.equal(chunks[0]?.choices[0]?.delta.role, 'assistant');
    assert.equal(chunks.at(-1)?.choices[0]?.finish_reason, 'stop');
    assert.ok(chunks.every((chunk) => chunk.choices.length === 1 && !chunk.usage));
    const text = chunks.map((chunk) => chunk.choices[0]?.delta.content ?? '').join('');
    assert.equal(text, Array.from({ length: 20 }, (_, index) => `word${index + 1}`).join(' '));
  });

  it('POST /v1/chat/completions with include_usage sends the usage in the last chunk, which has no choices', async () => {
    const chunks: OpenAI.Chat.ChatCompletionChunk[] = [];
    const request = streamed('WORDS:3', { stream_options: { include_usage: true } });
    for await (const chunk of await client.chat.completions.create(request)) chunks.push(chunk);
    const last = chunks.pop();
    assert.deepEqual(last?.choices, []);
    assert.equal(last?.usage?.completion_tokens, 3);
    assert.ok(chunks.every(({ usage }) => usage === null));
  });

  it('POST /v1/chat/completions streams SSE with an id per event, and one [DONE] at the end', async () => {
    const response = await gateway.fetch('/v1/chat/completions', {
      method: 'POST',
      body: JSON.stringify(streamed('WORDS:10')),
    });
    assert.equal(response.status, 200);
    assert.equal(response.headers.get('content-type'), 'text/event-stream; charset=utf-8');
    assert.equal(response.headers.get('cache-control'), 'no-cache');
    const events = sseEvents(await response.text());
    assert.equal(events.filter(({ data }) => data === '[DONE]').length, 1);
    assert.equal(events.at(-1)?.data, '[DONE]');
    const ids = events.slice(0, -1).map(({ id }) => id ?? 'none');
    assert.ok(ids.every((id) => /^\d+\.\d+$/.test(id)));
    assert.equal(new Set(ids).size, ids.length);
    assert.equal(textOf(events), 'word1 word2 word3 word4 word5 word6 word7 word8 word9 word10');
  });

  it('POST /v1/chat/completions sends the first event of a slow stream', async () => {
    const response = await gateway.fetch('/v1/chat/completions', {
      method: 'POST',
      body: JSON.stringify(streamed('WORDS:1000@20', { user: 'early' })),
    });
    for await (const event of readSse(response)) {
      assert.match(event.data, /chat\.completion\.chunk/);
      break;
    }
  });

  it('POST /v1/chat/completions obeys n, max_tokens, stop and seed', async () => {
    const many = await client.chat.completions.create(held('Hello', { n: 3 }));
    assert.deepEqual(
      many.choices.map(({ index }) => index),
      [0, 1, 2],
    );
    assert.equal(new Set(many.choices.map(({ message }) => message.content)).size, 3);
    const short = await client.chat.completions.create(held('Count from 1 to 9', { max_tokens: 4 }));
    assert.equal(short.choices[0]?.message.content, '1 2 3 4');
    assert.equal(short.choices[0]?.finish_reason, 'length');
    const stopped = await client.chat.completions.create(held('Count from 1 to 9', { stop: [' 5'] }));
    assert.equal(stopped.choices[0]?.message.content, '1 2 3 4');
    assert.equal(stopped.choices[0]?.finish_reason, 'stop');
    const seeds = await Promise.all(
      [7, 7, 8].map(async (seed) => (await client.chat.completions.create(held('Hi', { seed }))).choices[0]?.message),
    );
    assert.deepEqual(seeds[0], seeds[1]);
    assert.notDeepEqual(seeds[0], seeds[2]);
  });

  it('POST /v1/chat/completions streams n choices side by side', async () => {
    const texts = ['', '', ''];
    for await (const chunk of await client.chat.completions.create(streamed('Hello', { n: 3 }))) {
      for (const { index, delta } of chunk.choices) texts[index] += delta.content ?? '';
    }
    const whole = await client.chat.completions.create(held('Hello', { n: 3 }));
    assert.deepEqual(
      texts,
      whole.choices.map(({ message }) => message.content),
    );
  });

  it('POST /v1/chat/completions passes logprobs on, held and streamed', async () => {
    const fields = { logprobs: true, top_logprobs: 2 };
    const whole = await client.chat.completions.create(held('WORDS:4', fields));
    const content = whole.choices[0]?.logprobs?.content ?? [];
    assert.equal(content.map(({ token }) => token).join(''), whole.choices[0]?.message.content);
    assert.ok(content.every(({ top_logprobs, logprob }) => top_logprobs.length === 2 && logprob <= 0));
    const streamedContent: unknown[] = [];
    for await (const chunk of await client.chat.completions.create(streamed('WORDS:4', fields))) {
      streamedContent.push(...(chunk.choices[0]?.logprobs?.content ?? []));
    }
    assert.deepEqual(streamedContent, content);
  });

  it('POST /v1/chat/completions accepts every role, and names', async () => {
    const messages: Message[] = [
      { role: 'system', content: 'You are terse.' },
      { role: 'developer', content: [{ type: 'text', text: 'Be kind.' }] },
      { role: 'user', content: 'Hello', name: 'ann' },
      { role: 'assistant', content: 'Hi.' },
      { role: 'assistant', content: null, tool_calls: [toolCall('call_1', 'add', '{"a":1}')] },
      { role: 'tool', tool_call_id: 'call_1', content: '2' },
      { role: 'user', content: [{ type: 'text', text: 'Reply with exactly: all roles' }] },
    ];
    const answer = await client.chat.completions.create({ model: 'sandbox-chat', messages });
    assert.equal(answer.choices[0]?.message.content, 'all roles');
  });

  it('POST /v1/chat/completions preserves text byte for byte in both directions', async () => {
    const text =
      ' \u00e9\ud83d\ude00\u2028\u2029 \u0000\u001f\u007f"\\/\r\n\tdata: x\n\n[DONE] \u{1f468}\u200d\u{1f469}\u200d\u{1f467} \ufeff\u202e العربية 漢字';
    const whole = await client.chat.completions.create(held(`Reply with exactly: ${text}`));
    assert.equal(whole.choices[0]?.message.content, text);
    assert.equal(
      await streamedText(await client.chat.completions.create(streamed(`Reply with exactly: ${text}`))),
      text,
    );
  });

  it('POST /v1/chat/completions passes unknown fields to the vendor', async () => {
    const started = Date.now();
    await client.chat.completions.create(held('Hi', { sandbox: { first_token_ms: 300 }, something_new: { a: [1] } }));
    assert.ok(Date.now() - started >= 290);
  });

  it('POST /v1/chat/completions returns the reasoning of a reasoning model, held and streamed', async () => {
    const whole = await client.chat.completions.create(held('Reply with exactly: yes', { model: 'sandbox-reasoning' }));
    const message = whole.choices[0]?.message as unknown as { content: string; reasoning_content: string };
    assert.equal(message.content, 'yes');
    assert.match(message.reasoning_content, /characters long/);
    assert.ok((whole.usage?.completion_tokens_details?.reasoning_tokens ?? 0) > 0);
    let reasoning = '';
    const request = streamed('Reply with exactly: yes', { model: 'sandbox-reasoning' });
    for await (const chunk of await client.chat.completions.create(request)) {
      reasoning += (chunk.choices[0]?.delta as { reasoning_content?: string } | undefined)?.reasoning_content ?? '';
    }
    assert.equal(reasoning, message.reasoning_content);
  });

  it('POST /v1/chat/completions streams exactly the content of the held answer', async () => {
    const prompt = fc.oneof(
      fc.string({ unit: 'binary', maxLength: 200 }).map((text) => `Reply with exactly: ${text}`),
      fc.integer({ min: 1, max: 300 }).map((words) => `WORDS:${words}`),
      fc.string({ unit: 'grapheme', minLength: 1, maxLength: 100 }),
    );
    const fields = fc.record(
      {
        model: fc.constantFrom('sandbox-chat', 'sandbox-reasoning'),
        n: fc.integer({ min: 1, max: 3 }),
        seed: fc.nat(5),
        max_tokens: fc.integer({ min: 1, max: 100 }),
        logprobs: fc.constant(true),
      },
      { requiredKeys: [] },
    );
    await fc.assert(
      fc.asyncProperty(prompt, fields, async (text, more) => {
        const whole = await client.chat.completions.create(held(text, more));
        const chunks: OpenAI.Chat.ChatCompletionChunk[] = [];
        const options = { stream_options: { include_usage: true } };
        for await (const chunk of await client.chat.completions.create(streamed(text, { ...more, ...options }))) {
          chunks.push(chunk);
        }
        assert.deepEqual(saidInChunks(chunks), saidWhole(whole));
        const usage = chunks.at(-1)?.usage;
        assert.equal(usage?.completion_tokens, whole.usage?.completion_tokens);
        assert.equal(usage?.prompt_tokens, whole.usage?.prompt_tokens);
      }),
      { numRuns: 25 },
    );
  });
});

function toolCall(id: string, name: string, args: string): OpenAI.Chat.ChatCompletionMessageToolCall {
  return { id, type: 'function', function: { name, arguments: args } };
}
