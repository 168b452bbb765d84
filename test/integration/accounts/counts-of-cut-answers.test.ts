import assert from 'node:assert/strict';
import type { ServerResponse } from 'node:http';
import { after, before, describe, it } from 'node:test';
import { JobRecords, jobIdOf } from '../../support/job-records.ts';
import { readSse } from '../../support/sse-events.ts';
import { type FixtureVendor, startFixtureVendor } from '../../vendors/contracts/fixture-vendor.ts';

type Json = Readonly<Record<string, unknown>>;

/** Sends events, and leaves the answer open: it is the caller who ends it. */
function begin(response: ServerResponse, events: readonly Json[]): void {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  for (const event of events) response.write(`data: ${JSON.stringify(event)}\n\n`);
}

const words = ['One', ' two', ' three', ' four', ' five', ' six'];

/** Anthropic counts its input, cached parts by themselves, in its first event. */
function beginMessage(response: ServerResponse, counts: Json): void {
  const message = { id: 'msg_1', type: 'message', role: 'assistant', content: [], usage: counts };
  begin(response, [
    { type: 'message_start', message },
    { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
    ...words.map((text) => ({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text } })),
  ]);
}

/** Gemini counts in each event what it has read and written until then. */
function beginContent(response: ServerResponse, counts: Json): void {
  begin(
    response,
    words.map((text, index) => ({
      candidates: [{ content: { role: 'model', parts: [{ text }] }, index: 0 }],
      usageMetadata: { ...counts, candidatesTokenCount: index + 1 },
    })),
  );
}

/** xAI and Perplexity count in each chunk what they have read and written until then, xAI its thoughts beside that. */
function beginChunks(response: ServerResponse, prompt: number, thoughts: number, details: Json): void {
  begin(
    response,
    words.map((content, index) => ({
      ...{ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'grok' },
      choices: [{ index: 0, delta: { content }, finish_reason: null }],
      usage: {
        ...{ prompt_tokens: prompt, completion_tokens: index + 1, total_tokens: prompt + thoughts + index + 1 },
        ...{ prompt_tokens_details: details, completion_tokens_details: { reasoning_tokens: thoughts } },
      },
    })),
  );
}

/** Output tokens of the words, as Gemini counts them, and as they are estimated. */
const written = words.length;
/** What is charged for them where a busy worker has no time to count: a token for three bytes. */
const bound = Math.ceil(Buffer.byteLength(words.join('')) / 3);

/** That output is what the words are estimated at, or their bound. */
function assertWritten(output: unknown): number {
  assert.ok(output === written || output === bound, `${output} tokens`);
  return output;
}

describe('what a vendor has counted of an answer that is cut off', () => {
  let vendor: FixtureVendor;
  let records: JobRecords;
  before(async () => {
    vendor = await startFixtureVendor();
    const vendors = Object.fromEntries(
      ['anthropic', 'gemini', 'xai'].map((name) => [
        name,
        { base_url: vendor.baseUrl, api_key: `key-of-${name}-1234` },
      ]),
    );
    records = await JobRecords.start({ configuration: { vendors } });
    // Its worker loads the tokenizer for the first: on a busy machine that is too late to count it, and a bound is charged.
    vendor.answer((response) => beginMessage(response, { input_tokens: 10, output_tokens: 1 }));
    await cut('/v1/messages', { model: 'claude-haiku-4-5' });
  });
  after(async () => {
    await records?.stop();
    await vendor?.close();
  });

  /** Leaves an answer when all words are there, or reads on until its vendor breaks it off; the usage and the cost in dollars that its job is recorded with. */
  async function cut(path: string, body: Json, how = 'cancelled'): Promise<{ usage: Json; cost: number }> {
    const messages = [{ role: 'user', content: 'Count, please.' }];
    const response = await records.post({ messages, max_tokens: 1000, stream: true, ...body }, {}, { path });
    assert.equal(response.status, 200);
    for await (const { data } of readSse(response)) if (data.includes(' six') && how === 'cancelled') break;
    const { outcome, usage, cost } = await records.ended(jobIdOf(response));
    assert.equal(outcome, how);
    return { usage: JSON.parse(usage ?? 'null') as Json, cost: (cost ?? 0) / 1e9 };
  }

  for (const path of ['/v1/messages', '/v1/chat/completions']) {
    it(`${path} of Claude is charged for the input that its vendor has read from its cache and written there`, async () => {
      for (const [read, stored] of [
        [100_000, 0],
        [0, 100_000],
      ] as const) {
        const counts = { cache_read_input_tokens: read, cache_creation_input_tokens: stored, output_tokens: 1 };
        vendor.answer((response) => beginMessage(response, { input_tokens: 10, ...counts }));
        const { usage, cost } = await cut(path, { model: 'claude-haiku-4-5' });
        const { prompt_tokens: prompt, completion_tokens: output, prompt_tokens_details: details, estimated } = usage;
        assert.deepEqual([prompt, estimated], [100_010, true]);
        assert.deepEqual(details, { cached_tokens: read, cache_write_tokens: stored });
        // Haiku 4.5: $1 for a million tokens of input, a tenth of that for cached ones, 1.25 for those that are written there.
        const expected = 10 + read * 0.1 + stored * 1.25 + assertWritten(output) * 5;
        assert.ok(Math.abs(cost - expected / 1e6) < 1e-9, `${cost} for ${expected / 1e6}`);
      }
    });
  }

  it('an answer that its vendor breaks off is charged for the input that was counted, too', async () => {
    vendor.answer((response) => {
      beginMessage(response, { input_tokens: 10, cache_read_input_tokens: 100_000, output_tokens: 1 });
      setTimeout(() => response.destroy(), 100);
    });
    const { usage } = await cut('/v1/messages', { model: 'claude-haiku-4-5' }, 'failed');
    assert.equal(usage.prompt_tokens, 100_010);
    assertWritten(usage.completion_tokens);
  });

  it('a completion of several prompts, each a call that counts its own, is estimated', async () => {
    vendor.answer((response) => beginMessage(response, { input_tokens: 100_000, output_tokens: 1 }));
    const { usage } = await cut('/v1/completions', {
      model: 'claude-haiku-4-5',
      prompt: ['One', 'Two'],
      messages: undefined,
    });
    assert.ok(Number(usage.prompt_tokens) < 50, JSON.stringify(usage));
  });

  it('a chat with Gemini is charged for the sounds and thoughts that its vendor has counted', async () => {
    const promptTokensDetails = [{ modality: 'AUDIO', tokenCount: 320_000 }];
    const counts = { promptTokenCount: 320_010, thoughtsTokenCount: 500, promptTokensDetails };
    vendor.answer((response) => beginContent(response, counts));
    const { usage } = await cut('/v1/chat/completions', { model: 'gemini-2.5-flash' });
    assert.equal(usage.prompt_tokens, 320_010);
    assert.equal(usage.completion_tokens, written + 500);
    assert.equal(usage.total_tokens, 320_010 + written + 500);
    assert.deepEqual(usage.prompt_tokens_details, { cached_tokens: 0, audio_tokens: 320_000 });
    assert.deepEqual(usage.completion_tokens_details, { reasoning_tokens: 500 });
  });

  it('a chat with Grok is charged for the cached input and the reasoning that its vendor has counted in its last chunk', async () => {
    vendor.answer((response) => beginChunks(response, 101_710, 500, { cached_tokens: 100_000, image_tokens: 1700 }));
    const { usage } = await cut('/v1/chat/completions', { model: 'grok-4.5' });
    const { prompt_tokens: prompt, completion_tokens: output, prompt_tokens_details: read } = usage;
    assert.deepEqual([prompt, output, (read as Json).cached_tokens], [101_710, written + 500, 100_000]);
    assert.deepEqual(usage.completion_tokens_details, { reasoning_tokens: 500 });
  });

  it('what a vendor has counted cannot be less than nothing: its input is estimated then, as is output that it counts too low', async () => {
    for (const counts of [
      { input_tokens: 0 },
      { input_tokens: -50_000 },
      { input_tokens: 2e9 },
      { input_tokens: 'x' },
    ]) {
      vendor.answer((response) => beginMessage(response, { ...counts, output_tokens: 0 }));
      const { usage } = await cut('/v1/messages', { model: 'claude-haiku-4-5' });
      const { prompt_tokens: prompt, completion_tokens: output } = usage as {
        readonly prompt_tokens: number;
        readonly completion_tokens: number;
      };
      assert.ok(prompt > 5 && prompt < 50, `${prompt} tokens of input`);
      assertWritten(output);
    }
  });
});
