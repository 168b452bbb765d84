import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import OpenAI from 'openai';
import { AdminKeys, type KeyAnswer } from '../../support/admin-keys.ts';
import { held, streamed, streamedText } from '../../support/chat-requests.ts';
import { stopDatabase } from '../../support/database-faults.ts';
import { assertErrorAnswer } from '../../support/error-answers.ts';
import { eventually } from '../../support/eventually.ts';
import { oneAttempt } from '../../support/gateway.ts';
import { JobRecords, jobIdOf } from '../../support/job-records.ts';
import { makeApiKey } from '../../support/make-api-key.ts';
import { vendorCalls } from '../../support/vendor-journal.ts';

describe('a key’s cache_seconds', () => {
  let records: JobRecords;
  let keys: AdminKeys;
  let caching: OpenAI;
  let cachingKey: KeyAnswer;
  let plain: OpenAI;
  before(async () => {
    records = await JobRecords.start({ configuration: oneAttempt, settings: { SLUICE_SANDBOX: 'priced' } });
    keys = await AdminKeys.open(records.gateway);
    cachingKey = await keys.create({ cache_seconds: 60 });
    caching = clientOf(cachingKey.key);
    plain = clientOf((await keys.create()).key);
  });
  after(() => records?.stop());

  const clientOf = (key: string): OpenAI =>
    new OpenAI({ baseURL: `${records.gateway.url}/v1`, apiKey: key, maxRetries: 0 });
  const calls = async (user: string): Promise<number> => (await vendorCalls(records.gateway, user)).length;
  const resultOf = ({ headers }: Response): string | null => headers.get('x-sluice-cache');
  /** What a held chat's answer says of the cache. */
  const ask = async (
    client: OpenAI,
    body: OpenAI.ChatCompletionCreateParamsNonStreaming,
    headers: Record<string, string> = {},
  ): Promise<string | null> =>
    resultOf((await client.chat.completions.create(body, { headers }).withResponse()).response);
  const post = (body: object, headers: Record<string, string> = {}, path?: string): Promise<Response> =>
    records.post(body, { authorization: `Bearer ${cachingKey.key}`, ...headers }, path === undefined ? {} : { path });

  it('an identical request of the key is a hit without a vendor call, held and streamed, and costs nothing', async () => {
    const [heldBody, streamedBody] = [
      held('WORDS:5@200', { user: 'by-key' }),
      streamed('WORDS:5@200', { user: 'by-key' }),
    ];
    const first = await caching.chat.completions.create(heldBody).withResponse();
    assert.equal(resultOf(first.response), 'miss');
    assert.ok(Number(first.response.headers.get('x-sluice-cost')) > 0, 'a miss is charged');
    const again = await caching.chat.completions.create(heldBody).withResponse();
    assert.deepEqual(
      [resultOf(again.response), again.response.headers.get('x-sluice-cost'), again.data],
      ['hit', '0', first.data],
    );
    const stream = await caching.chat.completions.create(streamedBody).withResponse();
    assert.equal(resultOf(stream.response), 'hit');
    assert.equal(await streamedText(stream.data), first.data.choices[0]?.message.content);
    assert.equal(await calls('by-key'), 1);
  });

  it('a streamed request of the key is cached as it is made, and hits of the key are in its usage', async () => {
    const key = await makeApiKey(records.gateway, { accountId: 'caching', cacheSeconds: 60 });
    const client = clientOf(key);
    const body = streamed('WORDS:4@200', { user: 'streamed-by-key' });
    const results: (string | null)[] = [];
    for (let index = 0; index < 3; index++) {
      const { data, response } = await client.chat.completions.create(body).withResponse();
      assert.equal((await streamedText(data)).split(' ').length, 4);
      results.push(resultOf(response));
    }
    assert.deepEqual(results, ['miss', 'hit', 'hit']);
    assert.equal(await calls('streamed-by-key'), 1);
    await eventually(async () => {
      const usage = await records.gateway.fetch('/v1/usage', { headers: { authorization: `Bearer ${key}` } });
      const { data } = (await usage.json()) as { data: { results: Record<string, unknown>[] }[] };
      const rows = data.flatMap(({ results: each }) => each);
      assert.deepEqual(
        rows.map(({ requests, cache_hits: hits }) => [requests, hits]),
        [[1, 2]],
      );
    }, 20_000);
  });

  it('X-Sluice-Cache wins over the key: 0 neither reads nor makes a cached answer, and an age is that of the header', async () => {
    const body = held('WORDS:3@200', { user: 'header-wins' });
    for (const zero of ['0', '00']) assert.equal(await ask(caching, body, { 'x-sluice-cache': zero }), null);
    assert.equal(await ask(caching, body), 'miss');
    assert.equal(await ask(caching, body, { 'x-sluice-cache': '0' }), null);
    assert.equal(await ask(caching, body), 'hit');
    assert.equal(await calls('header-wins'), 4);
    await eventually(async () => {
      assert.equal(await ask(caching, body, { 'x-sluice-cache': '1' }), 'miss');
    });
    const refused = await post(body, { 'x-sluice-cache': '604801' });
    assert.equal((await assertErrorAnswer(refused, 400, 'invalid_request_error')).param, 'X-Sluice-Cache');
  });

  it('another key of the account without the setting has no part in it, unless its request asks for the cache', async () => {
    const body = held('WORDS:3@200', { user: 'other-key' });
    assert.equal(await ask(plain, body), null);
    assert.equal(await ask(caching, body), 'miss');
    assert.equal(await ask(plain, body), null);
    assert.equal(await ask(plain, body, { 'x-sluice-cache': '60' }), 'hit');
    assert.equal(await calls('other-key'), 3);
    const stranger = await makeApiKey(records.gateway, { accountId: 'stranger', cacheSeconds: 60 });
    assert.equal(await ask(clientOf(stranger), body), 'miss');
  });

  it('a change of the key turns it on and off again', async () => {
    const key = await keys.create();
    const client = clientOf(key.key);
    const body = held('WORDS:3@200', { user: 'changed' });
    assert.equal(await ask(client, body), null);
    assert.equal((await keys.change(key.id, { cache_seconds: 60 })).cache_seconds, 60);
    await eventually(async () => assert.equal(await ask(client, body), 'hit'));
    assert.equal((await keys.change(key.id, { cache_seconds: null })).cache_seconds, null);
    await eventually(async () => assert.equal(await ask(client, body), null));
    const before = await calls('changed');
    assert.equal(await ask(client, body), null);
    assert.equal(await calls('changed'), before + 1);
  });

  it('requests that are not cached work as without the setting, and say nothing of the cache', async () => {
    const body = held('WORDS:2@200', { user: 'uncached' });
    assert.equal(await ask(caching, body), 'miss');
    for (const headers of [{ 'x-sluice-start-by': '20' }, { 'idempotency-key': 'mine' }, { prefer: 'wait=20' }]) {
      const response = await post(body, headers);
      assert.deepEqual([response.status, resultOf(response)], [200, null], JSON.stringify(headers));
    }
    assert.equal(await calls('uncached'), 4);
    const responses = { model: 'sandbox-chat', input: 'Hi' };
    const others: [object, string][] = [
      [held('x'.repeat(300_000), { max_tokens: 2 }), '/v1/chat/completions'],
      [responses, '/v1/responses'],
      [{ model: 'sandbox-image', prompt: 'A cat' }, '/v1/images/generations'],
    ];
    for (const [each, path] of others) {
      const response = await post(each, {}, path);
      assert.deepEqual([response.status, resultOf(response)], [200, null], path);
    }
    const bypassed = await post(responses, { 'x-sluice-cache': '60' }, '/v1/responses');
    assert.equal(resultOf(bypassed), 'bypass');
  });

  it('a key that also shares identical requests at once caches them, and one that asks for that is told so', async () => {
    const both = clientOf((await keys.create({ cache_seconds: 60, single_flight: true })).key);
    const body = held('WORDS:3@200', { user: 'both' });
    const flights: (string | null)[] = [];
    for (const headers of [{}, {}, { 'x-sluice-single-flight': '1' }]) {
      const { response } = await both.chat.completions.create(body, { headers }).withResponse();
      flights.push(resultOf(response), response.headers.get('x-sluice-single-flight'));
    }
    assert.deepEqual(flights, ['miss', null, 'hit', null, 'hit', 'bypass']);
    const uncached = { 'x-sluice-cache': '0', 'x-sluice-single-flight': '1' };
    const { response } = await both.chat.completions.create(body, { headers: uncached }).withResponse();
    assert.deepEqual([resultOf(response), response.headers.get('x-sluice-single-flight')], [null, 'first']);
  });

  it('without its database the gateway answers requests of the key, as it answers plain ones', async () => {
    const body = held('WORDS:3@200', { user: 'stored' });
    const stored = await post(body);
    assert.equal(resultOf(stored), 'miss');
    await stored.text();
    await records.forget(jobIdOf(stored));
    assert.equal(resultOf(await post(body)), 'hit');
    const bringBack = await stopDatabase(records.gateway);
    try {
      const missed = await post(held('WORDS:3@200', { user: 'new-while-away' }));
      assert.deepEqual([missed.status, resultOf(missed)], [200, 'miss'], missed.ok ? '' : await missed.text());
      const again = await post(body);
      assert.deepEqual([again.status, resultOf(again)], [200, 'miss'], again.ok ? '' : await again.text());
      const asked = await post(held('WORDS:3@200', { user: 'asks-itself' }), { 'x-sluice-cache': '60' });
      await assertErrorAnswer(asked, 503, 'service_unavailable');
    } finally {
      await bringBack();
    }
    assert.equal(resultOf(await post(body)), 'hit');
    assert.deepEqual([await calls('stored'), await calls('new-while-away')], [2, 1]);
  });
});
