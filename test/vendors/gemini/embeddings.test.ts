import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { embeddingsBody } from '../../../shared/capabilities/embedding.ts';
import { type AnswerHolder, freeBytes } from '../../../workers/http/answer-memory.ts';
import { createGemini } from '../../../workers/vendors/gemini/gemini.ts';
import type { Offering } from '../../../workers/vendors/vendor.ts';
import { bodyText, callOf, type FixtureVendor, sendJson, startFixtureVendor } from '../contracts/fixture-vendor.ts';
import { errorBody } from '../recorded/recorded-gemini.ts';

/**
 * An answer of batchEmbedContents, after https://ai.google.dev/api/embeddings (November 2026): indented down to each number,
 * as Google sends it.
 */
const answerOf = (vectors: unknown[], more: object = {}) =>
  JSON.stringify({ embeddings: vectors.map((values) => ({ values })), ...more }, null, 2);

describe('embeddings of Gemini', () => {
  let server: FixtureVendor;
  let vendor: Offering<'embed'>;
  before(async () => {
    server = await startFixtureVendor();
    vendor = createGemini({
      name: 'gemini',
      baseUrl: server.baseUrl,
      apiKey: 'AIzaSyTest0123456789abcdefghijklmnopqrs',
    });
  });
  after(async () => {
    await vendor.close();
    await server.close();
  });

  const embed = async (request: object, holder?: AnswerHolder) => {
    const call = callOf({ model: 'gemini-embedding-001', request: JSON.stringify(request), stream: false, holder });
    const { vectors, usage } = await vendor.embed(call);
    return { body: bodyText(embeddingsBody(vectors, usage)), usage };
  };

  it('Gemini embeddings count a long answer as memory of their job', async () => {
    server.answer((response) => sendJson(response, 200, answerOf([[1]]) + ' '.repeat(freeBytes)));
    const holder: AnswerHolder = {};
    await embed({ input: 'a' }, holder);
    assert.equal(holder.holdsAnswer, true);
  });

  it('Gemini embeddings request one vector per input, and return the numbers unchanged', async () => {
    const text = answerOf([
      [0.125, -2e-7],
      [1, 0],
    ]).replace('0.125', '0.12500000000000000555');
    server.answer((response) => sendJson(response, 200, text));
    const { body, usage } = await embed({ input: ['a', '"values":[9]'], dimensions: 2, user: 'u' });
    const received = server.requests.at(-1);
    assert.equal(received?.url, '/v1/models/gemini-embedding-001:batchEmbedContents');
    const model = 'models/gemini-embedding-001';
    assert.deepEqual(JSON.parse(received?.body ?? ''), {
      requests: [
        { model, content: { parts: [{ text: 'a' }] }, outputDimensionality: 2 },
        { model, content: { parts: [{ text: '"values":[9]' }] }, outputDimensionality: 2 },
      ],
    });
    assert.equal(
      body,
      '{"data":[{"object":"embedding","index":0,"embedding":[0.12500000000000000555,-2e-7]},' +
        '{"object":"embedding","index":1,"embedding":[1,0]}],"usage":{"prompt_tokens":0,"total_tokens":0}}',
    );
    assert.equal(usage, null);
  });

  it('Gemini embeddings report the usage when the model counts', async () => {
    server.answer((response) => sendJson(response, 200, answerOf([[1]], { usageMetadata: { promptTokenCount: 4 } })));
    const { body, usage } = await embed({ input: 'a' });
    assert.deepEqual(usage, { prompt_tokens: 4, total_tokens: 4 });
    assert.deepEqual(JSON.parse(body).usage, usage);
    const { requests } = JSON.parse(server.requests.at(-1)?.body ?? '');
    assert.deepEqual(requests, [{ model: 'models/gemini-embedding-001', content: { parts: [{ text: 'a' }] } }]);
  });

  it('Gemini embeddings are encoded as base64 on request', async () => {
    server.answer((response) => sendJson(response, 200, answerOf([[0.5, -1]])));
    const { body } = await embed({ input: 'a', encoding_format: 'base64' });
    const bytes = Buffer.from(JSON.parse(body).data[0].embedding, 'base64');
    assert.deepEqual([bytes.length, bytes.readFloatLE(0), bytes.readFloatLE(4)], [8, 0.5, -1]);
  });

  it('Gemini embeddings reject token inputs and unknown fields by name, without a call', async () => {
    const asked = server.requests.length;
    for (const input of [
      [1, 2],
      [[1], [2]],
    ]) {
      await assert.rejects(embed({ input }), { status: 400, param: 'input' });
    }
    await assert.rejects(embed({ input: 'a', task_type: 'CLUSTERING' }), { status: 400, param: 'task_type' });
    assert.equal(server.requests.length, asked);
  });

  it("Gemini embeddings fail with a clear error for a senseless answer, and with the vendor's own error", async () => {
    const bodies = ['', '<html>', '[]', '{}', '{"embeddings":{}}', answerOf([]), answerOf([[1], [2]])];
    bodies.push(
      answerOf([[]]),
      answerOf([['a']]),
      answerOf([null]),
      answerOf([5]),
      '{"embeddings":[5]}',
      answerOf([[1]]).slice(0, -3),
    );
    for (const body of bodies) {
      server.answer((response) => sendJson(response, 200, body));
      await assert.rejects(
        embed({ input: 'a' }),
        { code: 'server_error', message: /^The model's vendor answered/ },
        body,
      );
    }
    const quota = errorBody(429, 'RESOURCE_EXHAUSTED', 'Slower.', [{ retryDelay: '2s' }]);
    server.answer((response) => sendJson(response, 429, quota));
    await assert.rejects(embed({ input: 'a' }), { code: 'rate_limit_exceeded', retryAfterMs: 2000 });
  });
});
