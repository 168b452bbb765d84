import assert from 'node:assert/strict';
import { mock, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { readConfig } from '../../../shared/config/config.ts';
import { VendorPool } from '../../../workers/routing/vendor-pool.ts';

test('a call of background work may use the connections of a vendor that a reload has removed for as long as it may run', async () => {
  const { vendors, backgroundDeadlineMs } = readConfig({ OPENAI_API_KEY: 'a-key' });
  mock.timers.enable({ apis: ['setTimeout'] });
  const pool = new VendorPool(vendors);
  try {
    const vendor = pool.find('openai')?.vendor as { close(): Promise<void> };
    let closed = 0;
    vendor.close = async () => {
      closed++;
    };
    pool.replace({});
    assert.equal(pool.find('openai'), undefined);
    mock.timers.tick(backgroundDeadlineMs);
    assert.equal(closed, 0);
    mock.timers.tick(86_400_000);
    assert.equal(closed, 1);
  } finally {
    mock.timers.reset();
    await pool.close();
  }
});

test('a key cools down no longer because the clock of its host was put back by an hour', async (t) => {
  const pool = new VendorPool(readConfig({ OPENAI_API_KEY: 'a-key' }).vendors);
  t.after(() => pool.close());
  const account = pool.find('openai');
  assert.ok(account);
  pool.coolDown(account, 100);
  pool.limit(account, 100, 'a-model');
  assert.equal(pool.isWarm('openai', 'a-model'), false);
  const now = Date.now;
  t.mock.method(Date, 'now', () => now() - 3_600_000);
  await delay(150);
  assert.equal(pool.isWarm('openai', 'a-model'), true);
  assert.equal(pool.limitedMs('openai', 'a-model'), 0);
});

test('a vendor may be called again once one of the keys that it does not refuse is no longer limited', async (t) => {
  const pool = new VendorPool(readConfig({ OPENAI_API_KEY: 'one,two,three' }).vendors);
  t.after(() => pool.close());
  const [one, two, three] = pool.warm('openai', 'a-model').map((id) => ({ vendor: { name: 'openai' }, id }));
  assert.ok(one !== undefined && two !== undefined && three !== undefined);
  const limitedSeconds = (only?: string): number => Math.ceil(pool.limitedMs('openai', 'a-model', only) / 1000);
  pool.limit(one, 30_000, 'a-model');
  assert.equal(limitedSeconds(), 0);
  assert.equal(limitedSeconds(one.id), 30);
  pool.coolDown(two, 60_000);
  pool.coolDown(three, 60_000, 'another');
  assert.equal(limitedSeconds(), 0);
  pool.coolDown(three, 60_000, 'a-model');
  assert.equal(limitedSeconds(), 30);
  // With all of them refused none is skipped.
  pool.coolDown(one, 60_000);
  assert.equal(limitedSeconds(), 0);
});

test('a key that its vendor refused for one model counts as refused until half an hour after the last such call', async (t) => {
  const pool = new VendorPool(readConfig({ OPENAI_API_KEY: 'a-key' }).vendors);
  t.after(() => pool.close());
  const account = pool.find('openai');
  assert.ok(account);
  let laterMs = 0;
  const now = performance.now.bind(performance);
  t.mock.method(performance, 'now', () => now() + laterMs);
  const refusal = { status: 403, message: null, at: Date.now(), model: 'a-model' };
  const refused = () => pool.keyHealth().find(({ vendor }) => vendor === 'openai')?.refused;
  const minute = 60_000;
  assert.equal(pool.refuse(account, refusal), true);
  pool.accept(account, 'another-model');
  laterMs = 29 * minute;
  assert.equal(refused(), 1, 'another model is no sign of it');
  assert.equal(pool.refuse(account, refusal), false);
  laterMs = 58 * minute;
  assert.equal(refused(), 1, 'it was refused again');
  laterMs = 60 * minute;
  assert.equal(refused(), 0, 'nobody calls the model any more');
  assert.equal(pool.refuse(account, refusal), true, 'that is news');
  pool.refuse(account, { ...refusal, status: 401, model: undefined });
  laterMs = 600 * minute;
  assert.equal(refused(), 1, 'refused altogether it is until the vendor accepts it');
  pool.accept(account, 'another-model');
  assert.equal(refused(), 0);
});
