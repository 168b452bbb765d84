import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { BoundedReads } from '../../../../api/bounds/bounded-reads.ts';
import { ApiError } from '../../../../shared/errors.ts';
import { eventually } from '../../../support/eventually.ts';

const unavailable = { code: 'service_unavailable', message: 'It is away. Try again later.', retryAfterMs: 2000 };

/** A storage that answers only when it is let go. */
class Storage {
  begun = 0;
  readonly #waiting: (() => void)[] = [];

  readonly read = async (): Promise<string> => {
    this.begun++;
    await new Promise<void>((resolve) => this.#waiting.push(resolve));
    return 'row';
  };

  answerAll(): void {
    for (const resolve of this.#waiting.splice(0)) resolve();
  }
}

describe('BoundedReads', () => {
  it('BoundedReads returns what the storage returns, also undefined, and fails with 503 when the storage fails', async () => {
    const reads = new BoundedReads(1000, 'It is away.');
    assert.equal(await reads.read(async () => 'row'), 'row');
    assert.equal(await reads.read(async () => undefined), undefined);
    const cause = new Error('locked');
    await assert.rejects(
      reads.read(() => Promise.reject(cause)),
      { ...unavailable, cause },
    );
  });

  it('BoundedReads fails late reads with 503, starts none while many are pending, and recovers with the storage', async () => {
    const reads = new BoundedReads(20, 'It is away.');
    const storage = new Storage();
    for (let index = 0; index < 50; index++) await assert.rejects(reads.read(storage.read), unavailable);
    assert.ok(storage.begun < 50, 'all of them wait in line');
    const { begun } = storage;
    await assert.rejects(reads.read(storage.read), unavailable);
    assert.equal(storage.begun, begun, 'one more waits in line');
    storage.answerAll();
    await eventually(async () => assert.equal(await reads.read(async () => 'back'), 'back'));
  });

  it('BoundedReads passes API errors on, of reads and of changes', async () => {
    const reads = new BoundedReads(1000, 'It is away.');
    const refusal = new ApiError('not_found', 'No such row.');
    await assert.rejects(
      reads.read(() => Promise.reject(refusal)),
      refusal,
    );
    await assert.rejects(
      reads.change(() => Promise.reject(refusal)),
      refusal,
    );
  });

  it('a change that is late before its first write is refused and not made, and one that is late later may be made', async () => {
    const reads = new BoundedReads(20, 'It is away.');
    const storage = new Storage();
    const written: string[] = [];
    const change = (name: string, isWritingFirst: boolean): Promise<void> =>
      reads.change(async (beforeWrite) => {
        if (isWritingFirst) beforeWrite();
        await storage.read();
        if (!isWritingFirst) beforeWrite();
        written.push(name);
      });
    await assert.rejects(change('early', false), unavailable);
    await assert.rejects(change('late', true), { code: 'outcome_unknown', isRetryable: false });
    storage.answerAll();
    await eventually(async () => assert.deepEqual(written, ['late']));
    await assert.doesNotReject(reads.change(async (beforeWrite) => beforeWrite()));
  });
});
