import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { after, before, beforeEach, describe, it } from 'node:test';
import fc from 'fast-check';
import { type EmbeddingJob, embeddingsBody, withEmbeddingUsage } from '../../../shared/capabilities/embedding.ts';
import { executeEmbedding, splitInputs } from '../../../workers/execute/execute-embedding.ts';
import { runInOrder } from '../../../workers/execute/run-in-order.ts';
import { createOpenAiDialect } from '../../../workers/vendors/openai/dialect.ts';
import { madeUpModel } from '../../support/routed-model.ts';
import {
  bodyText,
  callOf,
  collect,
  type FixtureVendor,
  type ReceivedRequest,
  sendJson,
  startFixtureVendor,
} from '../contracts/fixture-vendor.ts';

const apiKey = 'sk-test-0123456789abcdef';

/** The answer as OpenAI writes it (https://platform.openai.com/docs/api-reference/embeddings/create), indented to the last number. */
function answerOf(vectors: readonly unknown[], more: object = {}): string {
  const data = vectors.map((embedding, index) => ({ object: 'embedding', index, embedding }));
  const usage = { prompt_tokens: vectors.length, total_tokens: vectors.length };
  return JSON.stringify({ object: 'list', data, model: 'theirs', usage, ...more }, null, 2);
}

describe('embeddings of the OpenAI dialect', () => {
  let server: FixtureVendor;
  let vendor: ReturnType<typeof createOpenAiDialect>;
  before(async () => {
    server = await startFixtureVendor();
    vendor = createOpenAiDialect({ name: 'openai', baseUrl: server.baseUrl, apiKey });
  });
  beforeEach(() => {
    server.requests.length = 0;
  });
  after(async () => {
    await vendor.close();
    await server.close();
  });

  const embed = async (request: object) => {
    const { vectors, usage } = await vendor.embed(callOf({ request: JSON.stringify(request), stream: false }));
    return { body: bodyText(embeddingsBody(vectors, usage)), usage };
  };
  const execute = async (
    request: object,
    signal = new AbortController().signal,
    batch = 3,
    dropsUnsupported = false,
  ) => {
    const { body, usage } = await executeEmbedding({
      vendor,
      row: madeUpModel({ id: 'embedder', capability: 'embedding', embedding: { dimensions: true, batch } }),
      endpoint: 'embeddings',
      keep: false,
      dropsUnsupported,
      // No time limit of its own ends a call here: only an abort does.
      call: callOf({ request: JSON.stringify(request), stream: false, signal, silenceMs: 0 }),
      sink: collect(),
    });
    return { body: bodyText(body), usage };
  };

  it('OpenAI embeddings posts the request unread, and returns the numbers unchanged without white space', async () => {
    const text = answerOf([
      [0.1, -2e-7],
      [1, 0],
    ]).replace('0.1', '0.10000000000000000555');
    server.answer((response) => sendJson(response, 200, text));
    const { body, usage } = await embed({ input: ['a', 'b'], something_new: true });
    const [received] = server.requests;
    assert.equal(received?.url, '/v1/embeddings');
    assert.deepEqual(JSON.parse(received?.body ?? ''), {
      ...{ model: 'gpt-4o-mini', input: ['a', 'b'], something_new: true },
    });
    assert.equal(
      body,
      '{"data":[{"object":"embedding","index":0,"embedding":[0.10000000000000000555,-2e-7]},' +
        '{"object":"embedding","index":1,"embedding":[1,0]}],"usage":{"prompt_tokens":2,"total_tokens":2}}',
    );
    assert.deepEqual(usage, { prompt_tokens: 2, total_tokens: 2 });
  });

  it('OpenAI embeddings returns items in the order of their index, whatever the order of their fields', async () => {
    const text =
      '{"data":[{"index":1,"embedding":"AACAPw=="},{"embedding" : "AAAAAA==","index":0,"object":"\\"embedding\\":[9]"}]}';
    server.answer((response) => sendJson(response, 200, text));
    const { body, usage } = await embed({ input: ['a', 'b'], encoding_format: 'base64' });
    assert.deepEqual(
      JSON.parse(body).data.map(({ embedding }: { embedding: string }) => embedding),
      ['AAAAAA==', 'AACAPw=='],
    );
    assert.equal(usage, null);
    assert.deepEqual(JSON.parse(body).usage, { prompt_tokens: 0, total_tokens: 0 });
  });

  it('OpenAI embeddings has both counts of a usage of which its vendor tells one', async () => {
    for (const [told, expected] of [
      [{ total_tokens: 5 }, { prompt_tokens: 5, total_tokens: 5 }],
      [{ prompt_tokens: 5 }, { prompt_tokens: 5, total_tokens: 5 }],
      [{}, {}],
    ] as const) {
      server.answer((response) => sendJson(response, 200, answerOf([[1]], { usage: told })));
      const { body } = await embed({ input: 'a' });
      assert.deepEqual(JSON.parse(body).usage, expected);
    }
  });

  it('OpenAI embeddings encodes numbers as base64 when the vendor ignored that request', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.float({ noNaN: true, noDefaultInfinity: true }), { minLength: 1 }),
        async (vector) => {
          server.answer((response) => sendJson(response, 200, answerOf([vector])));
          const { body } = await embed({ input: 'a', encoding_format: 'base64' });
          const bytes = Buffer.from(JSON.parse(body).data[0].embedding, 'base64');
          const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
          assert.deepEqual(
            vector.map((_, index) => view.getFloat32(index * 4, true)),
            // JSON knows no negative zero.
            vector.map((number) => (number === 0 ? 0 : number)),
          );
        },
      ),
      { numRuns: 50 },
    );
    server.answer((response) => sendJson(response, 200, answerOf([[0.5]])));
    const plain = JSON.parse((await embed({ input: '"encoding_format":"base64"' })).body);
    assert.deepEqual(plain.data[0].embedding, [0.5]);
  });

  it('OpenAI embeddings fails with a clear error for a senseless answer', async () => {
    const item = { object: 'embedding', index: 0, embedding: [1] };
    const bodies = [
      ...['', '<html>', '[]', '{}', '{"data":{}}', '{"data":[]}'],
      JSON.stringify({ data: [{ ...item, embedding: ['a'] }] }),
      JSON.stringify({ data: [{ ...item, embedding: null }] }),
      JSON.stringify({ data: [{ ...item, embedding: 5 }] }),
      JSON.stringify({ data: [{ ...item, embedding: [] }] }),
      JSON.stringify({ data: [{ ...item, embedding: '' }] }),
      JSON.stringify({ data: [{ ...item, embedding: Buffer.alloc(8 + 3).toString('base64') }] }),
      JSON.stringify({ data: [item, item] }),
      JSON.stringify({ data: [{ ...item, index: 1 }] }),
      JSON.stringify({ data: [{ ...item, index: 0.5 }] }),
      answerOf([[1]]).slice(0, -20),
    ];
    for (const body of bodies) {
      server.answer((response) => sendJson(response, 200, body));
      await assert.rejects(
        embed({ input: 'a' }),
        { code: 'server_error', message: /^The model's vendor answered/ },
        body,
      );
    }
    server.answer((response) => sendJson(response, 200, answerOf([[1], [2]])));
    for (const input of ['a', [1, 2], ['a', 'b', 'c'], ['a', 'b', 'c', 'd', 'e']]) {
      await assert.rejects(execute({ input }), { code: 'server_error', message: /for each input/ });
    }
    server.answer((response) => sendJson(response, 200, '{"error":{"message":"Odd.","code":429}}'));
    await assert.rejects(embed({ input: 'a' }), { code: 'rate_limit_exceeded' });
  });

  it('OpenAI embeddings in base64 go through as the bytes that the vendor sent, whatever else the answer has', async () => {
    const vectors = ['AACAPw==', 'AAAAAA', 'x'.repeat(100_000)];
    const more = { note: '世界 "embedding":[9] \\', object: 'embedding', embedding: { nested: 'embedding' } };
    server.answer((response) => sendJson(response, 200, answerOf(vectors, more)));
    const { vectors: found, usage } = await vendor.embed(
      callOf({ request: '{"input":["a","b","c"],"encoding_format":"base64"}', stream: false }),
    );
    assert.deepEqual(
      found.map((vector) => Buffer.isBuffer(vector) && JSON.parse(vector.toString())),
      vectors,
    );
    const expected = { data: vectors.map((embedding, index) => ({ object: 'embedding', index, embedding })), usage };
    const body = embeddingsBody([...found.slice(0, 2), JSON.stringify(vectors[2])], usage);
    assert.deepEqual(JSON.parse(bodyText(body)), expected);
    const counted = { prompt_tokens: 7, total_tokens: 7 };
    assert.deepEqual(JSON.parse(bodyText(withEmbeddingUsage(body, counted))), { ...expected, usage: counted });
    assert.deepEqual(JSON.parse(bodyText(withEmbeddingUsage(bodyText(body), counted))), {
      ...expected,
      usage: counted,
    });
    for (const broken of ['"AA\u0001AA"', '"AA AA"', '"AA!"', '"世界"', '"AA\\nAA"', '"AA\nAA"', '"AA\\"AA"']) {
      server.answer((response) => sendJson(response, 200, `{"data":[{"index":0,"embedding":${broken}}]}`));
      await assert.rejects(embed({ input: 'a' }), { code: 'server_error' }, broken);
    }
  });

  /** Answers each input, a text of digits, with the vector of that number. */
  const numbers = (response: ServerResponse, { body }: ReceivedRequest): void => {
    const { input } = JSON.parse(body) as { input: string[] };
    sendJson(response, 200, answerOf(input.map((text) => [Number(text)])));
  };

  it('executeEmbedding joins several answers in the order of the inputs, and adds up their usage', async () => {
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: 40 }), fc.integer({ min: 1, max: 7 }), async (count, batch) => {
        server.answer((response, request) => {
          setTimeout(() => numbers(response, request), Number(request.body.length) % 3);
        });
        const input = Array.from({ length: count }, (_, index) => String(index));
        const { body, usage } = await execute({ input, user: 'u' }, undefined, batch);
        assert.deepEqual(JSON.parse(body), {
          data: input.map((_, index) => ({ object: 'embedding', index, embedding: [index] })),
          usage: { prompt_tokens: count, total_tokens: count },
        });
        assert.deepEqual(usage, { prompt_tokens: count, total_tokens: count });
      }),
      { numRuns: 40 },
    );
    assert.ok(server.requests.every(({ body }) => JSON.parse(body).user === 'u'));
  });

  it('executeEmbedding names dimensions in a 400 if the vendor has passed over them', async () => {
    const long = Array.from({ length: 6 }, (_, index) => index / 7);
    for (const encoding_format of ['float', 'base64']) {
      // The second answer has base64 of the vendor's own.
      for (const made of [long, Buffer.alloc(24).toString('base64')]) {
        server.answer((response) => sendJson(response, 200, answerOf([made])));
        await assert.rejects(execute({ input: 'a', dimensions: 4, encoding_format }), {
          ...{ code: 'invalid_request_error', param: 'dimensions' },
          message: /its embeddings have 6, not 4/,
        });
        await execute({ input: 'a', dimensions: 6, encoding_format });
        // A caller who prefers an answer without what its vendor does not have.
        await execute({ input: 'a', dimensions: 4, encoding_format }, undefined, 3, true);
      }
    }
  });

  it('executeEmbedding runs at most four calls at a time', async () => {
    let open = 0;
    let most = 0;
    server.answer((response, request) => {
      open += 1;
      most = Math.max(most, open);
      setTimeout(() => {
        open -= 1;
        numbers(response, request);
      }, 5);
    });
    await execute({ input: Array.from({ length: 60 }, (_, index) => String(index)) });
    assert.equal(most, 4);
    assert.equal(server.requests.length, 20);
  });

  it('executeEmbedding ends with the first error, aborts the other calls, and starts no more', async () => {
    const left: Promise<unknown>[] = [];
    server.answer((response) => {
      if (server.requests.length < 4) left.push(once(response, 'close'));
      else
        sendJson(response, 400, '{"error":{"message":"Too long.","param":"input","code":"context_length_exceeded"}}');
    });
    const input = Array.from({ length: 30 }, (_, index) => String(index));
    await assert.rejects(execute({ input }), { code: 'invalid_request_error', message: 'Too long.' });
    await Promise.all(left);
    assert.equal(server.requests.length, 4);
  });

  it('executeEmbedding ends every call when it is aborted', async () => {
    const leave = new AbortController();
    const left: Promise<unknown>[] = [];
    server.answer((response) => {
      left.push(once(response, 'close'));
      if (left.length === 4) leave.abort();
    });
    const input = Array.from({ length: 30 }, (_, index) => String(index));
    await assert.rejects(execute({ input }, leave.signal), { code: 'cancelled' });
    await Promise.all(left);
    assert.equal(server.requests.length, 4);
    await assert.rejects(execute({ input }, leave.signal), { code: 'cancelled' });
    assert.equal(server.requests.length, 4);
  });

  it('splitInputs splits by the number of inputs and their tokens, and never splits an input', () => {
    const tokensOf = (text: string): number => Math.ceil(Buffer.byteLength(text) / 2);
    const request = fc.record({
      input: fc.array(fc.string({ maxLength: 30, unit: 'grapheme' }), { minLength: 1, maxLength: 60 }),
      encoding_format: fc.constantFrom('float' as const, 'base64' as const),
    });
    fc.assert(
      fc.property(request, fc.nat(9), fc.nat(40), (job: EmbeddingJob, batch, batchTokens) => {
        const batches = splitInputs(job, { batch: batch + 1, batchTokens: batchTokens + 1 });
        assert.deepEqual(batches.flat(), job.input);
        for (const texts of batches as string[][]) {
          assert.ok(texts.length >= 1 && texts.length <= batch + 1);
          const tokens = texts.reduce((sum, text) => sum + tokensOf(text), 0);
          assert.ok(texts.length === 1 || tokens <= batchTokens + 1);
        }
      }),
    );
    const limits = { batch: 2048, batchTokens: 300_000 };
    assert.equal(splitInputs({ input: Array(100).fill(Array(8000).fill(1)) }, limits).length, 3);
    assert.equal(splitInputs({ input: Array(8000).fill(1) }, { batch: 1 }).length, 1);
    assert.equal(splitInputs({ input: Array(2048).fill('a'), encoding_format: 'base64' }, limits).length, 1);
    assert.equal(splitInputs({ input: Array(2048).fill('a') }, limits).length, 4);
  });
});

describe('runInOrder', () => {
  it('runInOrder starts nothing after a failure, and throws it once everything has ended', async () => {
    const started: number[] = [];
    let ended = 0;
    const work = async (_item: unknown, index: number, signal: AbortSignal): Promise<void> => {
      started.push(index);
      if (index === 1) throw new Error('the second');
      await once(signal, 'abort');
      await new Promise(setImmediate);
      ended += 1;
      throw new Error('another');
    };
    const never = new AbortController().signal;
    await assert.rejects(runInOrder(Array(9).fill(0), 3, never, work), { message: 'the second' });
    assert.deepEqual(started, [0, 1, 2]);
    assert.equal(ended, 2);
  });
});
