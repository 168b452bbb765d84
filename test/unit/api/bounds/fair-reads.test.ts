import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { FairReads } from '../../../../api/bounds/fair-reads.ts';

/** A storage whose reads end one by one, when they are let go. */
class Storage {
  readonly begun: string[] = [];
  readonly #open: (() => void)[] = [];

  readonly read = (name: string) => async (): Promise<string> => {
    this.begun.push(name);
    await new Promise<void>((resolve) => this.#open.push(resolve));
    return name;
  };

  /** Ends the oldest open read, and waits until what that lets begin has begun. */
  async endOne(): Promise<void> {
    this.#open.shift()?.();
    await new Promise(setImmediate);
  }
}

const patient = { waiting: 10, patienceMs: 60_000 };

describe('FairReads', () => {
  test('one read runs at a time on SQLite, and an account that comes late is not behind all reads of another', async () => {
    const [reads, storage] = [new FairReads({}, patient), new Storage()];
    const all = ['a1', 'a2', 'a3', 'b1'].map((name) => reads.read(name.slice(0, 1), storage.read(name)));
    assert.deepEqual(storage.begun, ['a1']);
    for (let ended = 0; ended < all.length; ended++) await storage.endOne();
    assert.deepEqual(storage.begun, ['a1', 'b1', 'a2', 'a3']);
    assert.deepEqual(await Promise.all(all), ['a1', 'a2', 'a3', 'b1']);
  });

  test('three reads run at a time on Postgres', async () => {
    const [reads, storage] = [new FairReads({ databaseUrl: 'postgres://db' }, patient), new Storage()];
    const all = ['a1', 'a2', 'a3', 'a4'].map((name) => reads.read('a', storage.read(name)));
    assert.deepEqual(storage.begun, ['a1', 'a2', 'a3']);
    for (let ended = 0; ended < all.length; ended++) await storage.endOne();
    await Promise.all(all);
  });

  test('a flood of one account is refused with 429 beyond the bound, and another account still has room', async () => {
    const [reads, storage] = [new FairReads({}, { ...patient, waiting: 3 }), new Storage()];
    const flood = ['a1', 'a2', 'a3', 'a4', 'a5'].map((name) => reads.read('a', storage.read(name)));
    await assert.rejects(flood[4] as Promise<string>, { code: 'rate_limit_exceeded' });
    const other = reads.read('b', storage.read('b1'));
    await assert.rejects(flood[3] as Promise<string>, { code: 'rate_limit_exceeded' });
    for (let ended = 0; ended < 4; ended++) await storage.endOne();
    assert.equal(await other, 'b1');
    assert.deepEqual(await Promise.all(flood.slice(0, 3)), ['a1', 'a2', 'a3']);
  });

  test('a read that has waited too long gets 503 and never runs', async (t) => {
    const [reads, storage] = [new FairReads({}, { waiting: 3, patienceMs: 1 }), new Storage()];
    // Nothing else keeps the process: patience is no reason for a gateway to stay, either.
    const stay = setTimeout(() => undefined, 60_000);
    t.after(() => clearTimeout(stay));
    const first = reads.read('a', storage.read('a1'));
    await assert.rejects(reads.read('a', storage.read('a2')), { code: 'service_unavailable', retryAfterMs: 2000 });
    await storage.endOne();
    assert.equal(await first, 'a1');
    assert.deepEqual(storage.begun, ['a1']);
  });

  test('a read that fails passes its slot on', async () => {
    const reads = new FairReads({}, patient);
    const failing = reads.read('a', () => Promise.reject(new Error('locked')));
    const next = reads.read('a', async () => 'row');
    await assert.rejects(failing, /locked/);
    assert.equal(await next, 'row');
    assert.equal(await reads.read('a', async () => 'later'), 'later');
  });
});
