import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { stopDatabase } from '../../support/database-faults.ts';
import { assertErrorAnswer } from '../../support/error-answers.ts';
import { eventually } from '../../support/eventually.ts';
import { TestGateway } from '../../support/gateway.ts';
import { makeApiKey } from '../../support/make-api-key.ts';

describe('wrong API keys', () => {
  let gateway: TestGateway;
  before(async () => {
    gateway = await TestGateway.start({
      workers: 0,
      settings: { TRUST_PROXY: '1', SLUICE_WRONG_KEYS_PER_MINUTE: '5' },
    });
  });
  after(() => gateway.stop());

  let made = 0;
  const ask = (from: string | undefined, key = `sk-sluice-wrong-${++made}`, path = '/v1/models'): Promise<Response> =>
    gateway.fetch(path, {
      headers: { authorization: `Bearer ${key}`, ...(from === undefined ? {} : { 'x-forwarded-for': from }) },
    });
  const statuses = async (from: string | undefined, count: number): Promise<Set<number>> => {
    const found = new Set<number>();
    for (let asked = 0; asked < count; asked++) found.add((await ask(from)).status);
    return found;
  };

  it('wrong keys from one address get 429 after five, while other addresses and a right key are served', async () => {
    assert.deepEqual(await statuses('203.0.113.7', 5), new Set([401]));
    const refused = await ask('203.0.113.7');
    assert.ok(Number(refused.headers.get('retry-after')) >= 1);
    await assertErrorAnswer(refused, 429, 'rate_limit_exceeded');
    await assertErrorAnswer(await ask('203.0.113.7', undefined, '/admin/v1/workers'), 429, 'rate_limit_exceeded');
    await assertErrorAnswer(await ask('203.0.113.8'), 401, 'invalid_api_key');
    // One that this process has met, and one that it has not.
    assert.equal((await ask('203.0.113.7', gateway.apiKey)).status, 200);
  });

  it('wrong keys do not block a right key from the same address that has never been used', async () => {
    const key = await makeApiKey(gateway);
    assert.ok((await statuses('203.0.113.20', 8)).has(429));
    // One that was made a moment ago may not be on the list yet.
    await eventually(async () => assert.equal((await ask('203.0.113.20', key)).status, 200));
    await assertErrorAnswer(await ask('203.0.113.20'), 429, 'rate_limit_exceeded');
  });

  it('after wrong keys from one address another unknown key is refused in bounded time while the database is silent', async () => {
    assert.ok((await statuses('203.0.113.30', 8)).has(429));
    // Until the list of valid keys is due again.
    await delay(2000);
    const restore = await stopDatabase(gateway);
    try {
      // Less than SQLite's own timeout, after which it gives up by itself.
      const late = delay(10_000, undefined, { ref: false });
      const answer = await Promise.race([ask('203.0.113.30'), late]);
      assert.ok(answer, 'no answer in bounded time');
      // 429 if the list was read so slowly that it is not due.
      assert.ok(answer.status === 503 || answer.status === 429, await answer.text());
    } finally {
      await restore();
    }
  });

  it('wrong keys from one IPv6 network count as one address', async () => {
    for (let host = 1; host <= 5; host++) assert.equal((await ask(`2001:db8:1:2::${host}`)).status, 401);
    assert.equal((await ask('2001:db8:1:2:ffff::1')).status, 429);
    assert.equal((await ask('2001:db8:1:3::1')).status, 401);
  });

  it('wrong keys from this machine or from a proxy without a client address are not counted', async () => {
    assert.deepEqual(await statuses(undefined, 10), new Set([401]));
    assert.deepEqual(await statuses('127.0.0.1', 10), new Set([401]));
  });
});
