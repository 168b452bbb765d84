import assert from 'node:assert/strict';
import { describe, it, mock } from 'node:test';
import { setImmediate as nextIteration } from 'node:timers/promises';
import { StoredAnswer, type StoredAnswerDependencies } from '../../../../api/replies/stored-answer.ts';
import { ApiError } from '../../../../shared/errors.ts';
import { parseBatch } from '../../../../shared/jobs/append.ts';

const mebibyte = 1024 * 1024;
const batchOf = (bytes: number) => parseBatch(`1 1 vendor\nE{"blob":"b","bytes":${bytes}}`);

/** Reads of files that end when they are told to. */
class HeldReads {
  readonly #waiting: (() => void)[] = [];

  get size(): number {
    return this.#waiting.length;
  }

  async read(): Promise<Buffer> {
    await new Promise<void>((resolve) => this.#waiting.push(resolve));
    return Buffer.from('{}');
  }

  end(count = this.size): void {
    for (const resolve of this.#waiting.splice(0, count)) resolve();
  }
}

function storedIn(reads: HeldReads, account = 'account'): StoredAnswer {
  const accounts = { hasOthers: () => false };
  const services = {
    redis: {},
    blobs: { ofRecords: () => ({ bytes: () => reads.read() }) },
    bandwidth: { accounts, take: () => 0 },
  };
  return new StoredAnswer({ id: '1'.repeat(32), account }, services as unknown as StoredAnswerDependencies);
}

describe('ends of large answers that are read at once', () => {
  it('few are in memory at a time, and the event loop comes round between one and the next', async () => {
    const reads = new HeldReads();
    let round = 0;
    const rounds: number[] = [];
    const all = Array.from({ length: 30 }, async () => {
      const whole = await storedIn(reads).whole(batchOf(8 * mebibyte), {});
      assert.ok(whole !== undefined && 'frames' in whole);
      rounds.push(round);
    });
    for (; rounds.length < all.length; round++) {
      assert.ok(reads.size <= 4, `${reads.size} are read at a time`);
      reads.end();
      await nextIteration();
    }
    await Promise.all(all);
    assert.ok(new Set(rounds).size >= all.length / 2, 'four are shown in one round');
  });

  it('those of small answers wait for no large one, nor for each other', async () => {
    const reads = new HeldReads();
    const large = Array.from({ length: 5 }, () => storedIn(reads).whole(batchOf(8 * mebibyte), {}));
    const small = Array.from({ length: 20 }, () => storedIn(reads).whole(batchOf(mebibyte), {}));
    await nextIteration();
    assert.equal(reads.size, 4 + 20);
    reads.end();
    await Promise.all(small);
    await nextIteration();
    reads.end();
    await Promise.all(large);
  });

  it('one whose reader leaves before its turn is not read', async () => {
    const reads = new HeldReads();
    const others = Array.from({ length: 4 }, () => storedIn(reads).whole(batchOf(8 * mebibyte), {}));
    await nextIteration();
    const left = storedIn(reads);
    const leaving = left.whole(batchOf(8 * mebibyte), {});
    await nextIteration();
    left.close();
    assert.ok((await leaving) instanceof ApiError);
    reads.end();
    await Promise.all(others);
    await nextIteration();
    assert.equal(reads.size, 0);
  });

  it('those that a store does not go on with leave their turns to others after a while', async () => {
    mock.timers.enable({ apis: ['setTimeout'] });
    try {
      const [stuck, reads] = [new HeldReads(), new HeldReads()];
      const never = Array.from({ length: 4 }, () => storedIn(stuck).whole(batchOf(8 * mebibyte), {}));
      await nextIteration();
      const others = Array.from({ length: 5 }, () => storedIn(reads).whole(batchOf(8 * mebibyte), {}));
      await nextIteration();
      assert.deepEqual([stuck.size, reads.size], [4, 0]);
      mock.timers.tick(10_000);
      for (let passes = 0; passes < 5; passes++) await nextIteration();
      assert.equal(reads.size, 4);
      reads.end();
      for (let passes = 0; passes < 20; passes++) {
        await nextIteration();
        reads.end();
      }
      await Promise.all(others);
      stuck.end();
      for (const late of await Promise.all(never)) assert.ok(late !== undefined && 'frames' in late);
    } finally {
      mock.timers.reset();
    }
  });
});
