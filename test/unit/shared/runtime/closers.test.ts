import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Closers } from '../../../../shared/runtime/closers.ts';

describe('Closers', () => {
  it('closers run one after the other, in the reverse of the order in which they were added', async () => {
    const closers = new Closers();
    const log: string[] = [];
    closers.use({ close: () => log.push('database') });
    closers.add(async () => {
      log.push('server begins');
      await new Promise((resolve) => setImmediate(resolve));
      log.push('server ends');
    });
    await closers.close(new AbortController().signal);
    assert.deepEqual(log, ['server begins', 'server ends', 'database']);
  });

  it('a closer that fails keeps no other resource open, and its error is thrown at the end', async () => {
    const closers = new Closers();
    const log: string[] = [];
    closers.use({ close: () => log.push('database') });
    closers.add(() => {
      throw new Error('refused');
    });
    await assert.rejects(closers.close(new AbortController().signal), (error: AggregateError) => {
      assert.deepEqual(
        error.errors.map(({ message }: Error) => message),
        ['refused'],
      );
      return true;
    });
    assert.deepEqual(log, ['database']);
  });

  it('closers get the signal that ends their time', async () => {
    const closers = new Closers();
    const { signal } = new AbortController();
    let given: AbortSignal | undefined;
    closers.add((passed) => {
      given = passed;
    });
    await closers.close(signal);
    assert.equal(given, signal);
  });
});
