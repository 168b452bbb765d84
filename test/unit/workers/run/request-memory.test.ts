import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type MemoryHolder, RequestMemory } from '../../../../workers/run/request-memory.ts';

/** A job of an account, and what stops it. */
function jobOf(account: string): MemoryHolder & { stop(): void } {
  const controller = new AbortController();
  return { job: { account }, signal: controller.signal, held: 0, stop: () => controller.abort('ended') };
}

/** Has a job take bytes, and keeps the order in which jobs got theirs. */
function taking(memory: RequestMemory) {
  const begun: string[] = [];
  const take = (holder: MemoryHolder, bytes: number, name: string): Promise<void> =>
    memory.take(holder, bytes).then(() => void begun.push(name));
  return { begun, take };
}

/** Everything that is settled now has told it. */
const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test('jobs of an account wait in order while they hold half of what others leave free, and others pass them', async () => {
  const memory = new RequestMemory(100, Number.POSITIVE_INFINITY);
  const { begun, take } = taking(memory);
  const [first, second, third, other] = [jobOf('a'), jobOf('a'), jobOf('a'), jobOf('b')];
  await take(first, 40, 'first');
  const waiting = [take(second, 20, 'second'), take(third, 20, 'third')];
  await take(other, 30, 'other');
  assert.deepEqual(begun, ['first', 'other']);
  memory.release(first);
  await settled();
  // 30 of the other one leave 70, of which half is 35.
  assert.deepEqual(begun, ['first', 'other', 'second']);
  memory.release(other);
  await Promise.all(waiting);
  assert.deepEqual(begun, ['first', 'other', 'second', 'third']);
});

test('a job that is larger than an account may hold runs alone of its account, and one larger than all runs alone', async () => {
  const memory = new RequestMemory(100, Number.POSITIVE_INFINITY);
  const { begun, take } = taking(memory);
  const [large, next, small] = [jobOf('a'), jobOf('b'), jobOf('c')];
  await take(large, 90, 'large');
  const waiting = [take(next, 500, 'next'), take(small, 1, 'small')];
  await settled();
  // What waits for all of it is not overtaken for ever.
  assert.deepEqual(begun, ['large']);
  memory.release(large);
  await settled();
  assert.deepEqual(begun, ['large', 'next']);
  memory.release(next);
  await Promise.all(waiting);
});

test('a job that is stopped while it waits leaves the line, and those behind it go on', async () => {
  const memory = new RequestMemory(100, Number.POSITIVE_INFINITY);
  const { begun, take } = taking(memory);
  const [first, next, small] = [jobOf('a'), jobOf('b'), jobOf('c')];
  await take(first, 90, 'first');
  const stopped = assert.rejects(take(next, 50, 'next'), { code: 'cancelled' });
  const last = take(small, 2, 'small');
  next.stop();
  await Promise.all([stopped, last]);
  assert.deepEqual(begun, ['first', 'small']);
  await assert.rejects(memory.take(next, 1), { code: 'cancelled' });
  assert.equal(next.held, 0);
});

test('bytes that are fetched count at once, and are refused where there is no room', async () => {
  const memory = new RequestMemory(100, Number.POSITIVE_INFINITY);
  const [job, sibling] = [jobOf('a'), jobOf('a')];
  for (let piece = 0; piece < 9; piece++) memory.add(job, 10);
  assert.throws(() => memory.add(sibling, 10), { code: 'rate_limit_exceeded', status: 429 });
  memory.release(job);
  memory.add(sibling, 10);
  assert.deepEqual([job.held, sibling.held], [0, 10]);
});

test('more than a quarter of the heap is not held, whatever is set', async () => {
  const memory = new RequestMemory(1000, 400);
  await memory.take(jobOf('a'), 60);
  assert.throws(() => memory.add(jobOf('b'), 50), { code: 'rate_limit_exceeded' });
});
