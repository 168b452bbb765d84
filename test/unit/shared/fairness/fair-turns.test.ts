import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ApiError } from '../../../../shared/errors.ts';
import { FairTurns } from '../../../../shared/fairness/fair-turns.ts';

/** Work that ends when it is told to, and what has begun of it, in order. */
class Work {
  readonly begun: string[] = [];
  readonly #ends: (() => void)[] = [];

  /** Work of an account, to be run. */
  of(account: string): () => Promise<void> {
    return async () => {
      this.begun.push(account);
      await new Promise<void>((resolve) => this.#ends.push(resolve));
    };
  }

  /** Ends what began first, and lets the next begin. */
  async endOne(): Promise<void> {
    await new Promise(setImmediate);
    this.#ends.shift()?.();
    await new Promise(setImmediate);
  }
}

const never = new AbortController().signal;
const turnsOf = (): FairTurns =>
  new FairTurns(
    1,
    { tasks: 100, bytes: 1000 },
    {
      tooMany: () => new ApiError('rate_limit_exceeded', 'too many'),
      tooLate: () => new ApiError('timeout', 'too late'),
    },
  );

describe('turns of accounts', () => {
  it('an account with much work lets that of another begin before the rest of its own', async () => {
    const turns = turnsOf();
    const work = new Work();
    const busy = Array.from({ length: 20 }, () => turns.run({ account: 'busy', bytes: 1 }, never, work.of('busy')));
    const other = turns.run({ account: 'other', bytes: 1 }, never, work.of('other'));
    await work.endOne();
    await work.endOne();
    await other;
    assert.deepEqual(work.begun, ['busy', 'other', 'busy']);
    for (let left = 19; left > 0; left--) await work.endOne();
    await Promise.all(busy);
  });

  it('a wait ends with its signal, and the work does not begin later', async () => {
    const turns = turnsOf();
    const work = new Work();
    const running = turns.run({ account: 'a', bytes: 1 }, never, work.of('a'));
    const controller = new AbortController();
    const waiting = turns.run({ account: 'b', bytes: 1 }, controller.signal, work.of('b'));
    controller.abort();
    await assert.rejects(waiting, { code: 'timeout' });
    await assert.rejects(turns.run({ account: 'b', bytes: 1 }, controller.signal, work.of('b')), { code: 'timeout' });
    await work.endOne();
    await running;
    assert.deepEqual(work.begun, ['a']);
  });

  it('of too much that waits that of the account is dropped which has most of it', async () => {
    const turns = turnsOf();
    const work = new Work();
    const running = turns.run({ account: 'busy', bytes: 900 }, never, work.of('busy'));
    const first = turns.run({ account: 'busy', bytes: 900 }, never, work.of('busy'));
    const other = turns.run({ account: 'other', bytes: 200 }, never, work.of('other'));
    await assert.rejects(first, { code: 'rate_limit_exceeded' });
    await work.endOne();
    await work.endOne();
    await Promise.all([running, other]);
    assert.deepEqual(work.begun, ['busy', 'other']);
  });

  it('work that fails leaves its turn to the next', async () => {
    const turns = turnsOf();
    const failed = turns.run({ account: 'a', bytes: 1 }, never, () => Promise.reject(new Error('broken')));
    const next = turns.run({ account: 'a', bytes: 1 }, never, async () => 'done');
    await assert.rejects(failed, { message: 'broken' });
    assert.equal(await next, 'done');
  });
});
