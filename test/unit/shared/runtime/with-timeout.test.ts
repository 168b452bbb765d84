import assert from 'node:assert/strict';
import { stat } from 'node:fs/promises';
import { test } from 'node:test';
import { withTimeout } from '../../../../shared/runtime/with-timeout.ts';

test('withTimeout returns a result that arrived while the process was blocked past the timeout', async () => {
  const size = withTimeout(
    stat(import.meta.filename).then((stats) => stats.size),
    20,
  );
  // The thread that reads goes on; nothing else does.
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 500);
  assert.notEqual(await size, undefined);
});

test('withTimeout returns undefined for what takes longer, and throws what fails', async () => {
  assert.equal(await withTimeout(new Promise(() => undefined), 5), undefined);
  await assert.rejects(withTimeout(Promise.reject(new Error('broken')), 1000), /broken/);
});
