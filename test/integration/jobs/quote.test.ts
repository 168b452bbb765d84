import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { Redis } from 'ioredis';
import { ensureAccount } from '../../../shared/accounts/accounts.ts';
import { openDatabase } from '../../../shared/database/database.ts';
import { held } from '../../support/chat-requests.ts';
import { assertErrorAnswer } from '../../support/error-answers.ts';
import { eventually } from '../../support/eventually.ts';
import { type Configuration, oneAttempt, TestGateway } from '../../support/gateway.ts';
import { leftovers } from '../../support/leftovers.ts';
import { makeLimitedAccount } from '../../support/limited-account.ts';
import { makeApiKey, revokeKey } from '../../support/make-api-key.ts';
import { storedBlobs } from '../../support/stored-blobs.ts';
import { vendorCalls } from '../../support/vendor-journal.ts';
import { wav } from '../../support/wav.ts';

interface Quote {
  readonly routes: readonly { vendor: string; model: string }[];
  readonly max_cost: number | null;
  readonly max_output_tokens: number | null;
  readonly expected_wait_seconds: number | null;
}

describe('Prefer: quote', () => {
  let gateway: TestGateway;
  before(async () => {
    const configuration: Configuration = {
      ...oneAttempt,
      vendors: { anthropic: { base_url: 'http://127.0.0.1:1/v1', api_key: 'a-key' } },
      models: {
        unpriced: { capability: 'chat', routes: [{ vendor: 'sandbox', model: 'sandbox-chat' }] },
        // The dear one has no logprobs.
        twofold: {
          capability: 'chat',
          routes: [
            { vendor: 'sandbox', model: 'sandbox-chat', prices: { input: 1, output: 1 } },
            { vendor: 'anthropic', model: 'claude', order: 1, prices: { input: 1000, output: 1000 } },
          ],
        },
      },
    };
    gateway = await TestGateway.start({ configuration, settings: { WORKER_CONCURRENCY_CHAT: '1' } });
  });
  after(() => gateway.stop());

  const ask = (body: object, headers: Record<string, string> = {}, path = '/v1/chat/completions'): Promise<Response> =>
    gateway.fetch(path, { method: 'POST', body: JSON.stringify(body), headers });
  const askQuote = (body: object, headers: Record<string, string> = {}, path?: string): Promise<Response> =>
    ask(body, { prefer: 'quote', ...headers }, path);
  const quoteOf = async (response: Response): Promise<Quote> => (await response.json()) as Quote;

  it('a quote tells routes, maximum cost and expected wait, calls no vendor and leaves nothing in Redis', async () => {
    const response = await askQuote(held('Hi', { user: 'quoted', max_completion_tokens: 100 }));
    assert.equal(response.status, 200);
    assert.equal(response.headers.get('preference-applied'), 'quote');
    assert.equal(response.headers.get('content-type'), 'application/vnd.sluice.quote+json');
    const { max_cost: cost, ...quote } = await quoteOf(response);
    assert.ok(cost !== null && cost > 0, `${cost}`);
    assert.deepEqual(quote, {
      object: 'quote',
      endpoint: 'chat',
      model: 'sandbox-chat',
      routes: [{ vendor: 'sandbox', model: 'sandbox-chat' }],
      max_output_tokens: 100,
      expected_wait_seconds: 0,
    });
    assert.deepEqual(await vendorCalls(gateway, 'quoted'), []);
    assert.deepEqual(await leftovers(gateway.redisUrl, { withinMs: 0 }), []);
  });

  it('the maximum cost of a quote is the one for which an account without balance is refused', async () => {
    const db = await openDatabase(gateway);
    await ensureAccount(db, { id: 'poor', name: 'poor' }).finally(() => db.destroy());
    const authorization = `Bearer ${await makeApiKey(gateway, { accountId: 'poor' })}`;
    const requests: readonly (readonly [path: string, body: object])[] = [
      ['/v1/chat/completions', held('Hi', { max_completion_tokens: 16 })],
      ['/v1/chat/completions', held('Hi', { max_completion_tokens: 16, n: 3 })],
      ['/v1/embeddings', { model: 'sandbox-embedding', input: 'some text of a few words' }],
      ['/v1/audio/speech', { model: 'sandbox-speech', voice: 'alloy', input: 'Hello' }],
      ['/v1/videos', { model: 'sandbox-video', prompt: 'waves', seconds: '8' }],
    ];
    for (const [path, body] of requests) {
      const { max_cost: cost } = await quoteOf(await askQuote(body, { authorization }, path));
      const { message } = await assertErrorAnswer(await ask(body, { authorization }, path), 429, 'insufficient_quota');
      assert.equal(cost, Number(/may cost up to \$([\d.]+);/.exec(message)?.[1]), `${path}: ${message}`);
    }
  });

  it('the maximum cost is that of the routes that can serve the request, which a quote lists, and so is what is held', async () => {
    const body = { ...held('Hi', { max_completion_tokens: 100 }), model: 'twofold' };
    const [both, one] = await Promise.all(
      [body, { ...body, logprobs: true }].map(async (asked) => await quoteOf(await askQuote(asked))),
    );
    assert.deepEqual([both?.routes.length, one?.routes.length], [2, 1]);
    assert.ok((one?.max_cost as number) < 0.001 && (both?.max_cost as number) > 0.1, JSON.stringify([both, one]));
    const { key } = await makeLimitedAccount(gateway, { credit: 1_000_000 });
    const authorization = `Bearer ${key}`;
    await assertErrorAnswer(await ask(body, { authorization }), 429, 'insufficient_quota');
    const response = await ask({ ...body, logprobs: true }, { authorization });
    assert.equal(response.status, 200, await response.text());
  });

  it('a quote of a request over 64 KiB ignores the balance, as that of a small one does', async () => {
    const db = await openDatabase(gateway);
    await ensureAccount(db, { id: 'poor-at-length', name: 'poor' }).finally(() => db.destroy());
    const authorization = `Bearer ${await makeApiKey(gateway, { accountId: 'poor-at-length' })}`;
    const response = await askQuote(held('word '.repeat(20_000)), { authorization });
    assert.equal(response.status, 200, await response.text());
  });

  it('a quote counts against no limit of its key', async () => {
    const authorization = `Bearer ${await makeApiKey(gateway, { rpm: 1 })}`;
    for (let index = 0; index < 3; index++) assert.equal((await askQuote(held('Hi'), { authorization })).status, 200);
    assert.equal((await ask(held('Hi'), { authorization })).status, 200);
    await assertErrorAnswer(await ask(held('Hi'), { authorization }), 429, 'rate_limit_exceeded');
  });

  it('a request that would be refused for what it says gets its own error instead of a quote', async () => {
    await assertErrorAnswer(await askQuote({ ...held('Hi'), model: 'no-such-model' }), 404, 'model_not_found');
    await assertErrorAnswer(await askQuote({ model: 'sandbox-chat' }), 400, 'invalid_request_error');
  });

  it('a revoked key gets no quote, although this process has used it before', async () => {
    const key = await makeApiKey(gateway);
    const authorization = `Bearer ${key}`;
    assert.equal((await askQuote(held('Hi'), { authorization })).status, 200);
    await revokeKey(gateway, key);
    await assertErrorAnswer(await askQuote(held('Hi'), { authorization }), 401, 'invalid_api_key');
  });

  it('a model without a price has no maximum cost', async () => {
    const { max_cost: cost, max_output_tokens: tokens } = await quoteOf(
      await askQuote({ ...held('Hi'), model: 'unpriced' }),
    );
    assert.deepEqual([cost, tokens], [null, null]);
  });

  it('the file of a form is deleted once the quote is made', async () => {
    const form = new FormData();
    form.set('model', 'sandbox-transcribe');
    form.set('file', new Blob([new Uint8Array(wav(2))]), 'two-seconds.wav');
    const headers = { authorization: `Bearer ${gateway.apiKey}`, prefer: 'quote' };
    const response = await fetch(`${gateway.url}/v1/audio/transcriptions`, { method: 'POST', body: form, headers });
    assert.equal(response.status, 200);
    assert.ok(((await quoteOf(response)).max_cost as number) > 0);
    assert.deepEqual(await storedBlobs(gateway.dataDir), []);
  });

  it('where the lines of vendors cannot be read, a quote that does not tell them is given, and no process ends', async () => {
    const redis = new Redis(gateway.redisUrl);
    // Whatever asks for the lines gets an error.
    await redis.set('sluice:{q-chat}:parked', 'no lines');
    try {
      const low = await askQuote(held('Hi'), { 'x-sluice-priority': 'low' });
      assert.equal((await quoteOf(low)).expected_wait_seconds, null);
      await assertErrorAnswer(await askQuote(held('Hi')), 500, 'server_error');
      assert.equal((await ask(held('Hi'))).status, 200);
    } finally {
      await redis.del('sluice:{q-chat}:parked');
      redis.disconnect();
    }
    assert.equal((await askQuote(held('Hi'))).status, 200);
    assert.doesNotMatch(gateway.apis[0]?.output() ?? '', /unhandled/);
  });

  it('while jobs wait, quotes and waiting jobs tell how long the queue takes, once its rate is measured', async () => {
    const headers = { prefer: 'respond-async' };
    const jobs = await Promise.all(
      Array.from({ length: 40 }, async () => (await (await ask(held('WORDS:5@50'), headers)).json()) as { id: string }),
    );
    await eventually(async () => {
      const { expected_wait_seconds: wait } = await quoteOf(await askQuote(held('Hi')));
      assert.ok(wait !== null && wait > 0, `${wait}`);
      const shown = await Promise.all(jobs.map(async ({ id }) => (await gateway.fetch(`/v1/jobs/${id}`)).json()));
      const waits = (shown as { queue_position: number | null; expected_wait_seconds: number | null }[])
        .filter(({ queue_position: position }) => position !== null)
        .sort((one, other) => (one.queue_position as number) - (other.queue_position as number))
        .map(({ expected_wait_seconds: seconds }) => seconds);
      assert.ok(waits.length > 1 && waits.every((seconds) => seconds !== null && seconds > 0), `${waits}`);
    });
    await Promise.all(jobs.map(({ id }) => gateway.fetch(`/v1/jobs/${id}`, { method: 'DELETE' })));
  });
});
