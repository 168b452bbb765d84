import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { setTimeout as delay, setImmediate as yieldToEventLoop } from 'node:timers/promises';
import { BusyLoop, type LoopWindow } from '../../../../api/bounds/busy-loop.ts';
import { ApiError } from '../../../../shared/errors.ts';
import { createLogger } from '../../../../shared/runtime/log.ts';

const { log } = createLogger('silent', 'test');
const busy: LoopWindow = { medianMs: 400, use: 1 };
const calm: LoopWindow = { medianMs: 5, use: 0.5 };

/** One that sees these windows. */
function seeing(t: TestContext, ...windows: LoopWindow[]): BusyLoop {
  const loop = new BusyLoop(log, () => windows.shift() ?? calm);
  t.after(() => loop.close());
  for (const _ of [...windows]) loop.look();
  return loop;
}

/** How many of a hundred requests are refused. */
function refused(loop: BusyLoop): number {
  let count = 0;
  for (let sent = 0; sent < 100; sent++) {
    try {
      loop.assertRoom();
    } catch (error) {
      assert.ok(error instanceof ApiError && error.status === 503 && (error.retryAfterMs ?? 0) > 0);
      count++;
    }
  }
  return count;
}

describe('a busy event loop', () => {
  test('an event loop that is busy in one window, or waits for a processor, refuses nothing', (t) => {
    assert.equal(refused(seeing(t, busy)), 0);
    assert.equal(refused(seeing(t, busy, calm, busy, calm, busy)), 0);
    const starved = { ...busy, use: 0.5 };
    assert.equal(refused(seeing(t, starved, starved, starved)), 0);
  });

  test('a busy event loop refuses a share of requests that rises to nine tenths, evenly', (t) => {
    assert.equal(refused(seeing(t, busy, busy)), 20);
    assert.equal(refused(seeing(t, busy, busy, busy)), 40);
    assert.equal(refused(seeing(t, ...Array.from({ length: 30 }, () => busy))), 90);
  });

  test('an event loop that is busy no more accepts all requests again, step by step', (t) => {
    assert.equal(refused(seeing(t, busy, busy, busy, calm)), 35);
    assert.equal(refused(seeing(t, busy, busy, ...Array.from({ length: 4 }, () => calm))), 0);
  });

  test('an event loop that was slow counts as such for some seconds, before it refuses anything', (t) => {
    const slow: LoopWindow = { medianMs: 80, use: 1 };
    assert.equal(seeing(t, calm).isSlow, false);
    assert.equal(seeing(t, slow, ...Array.from({ length: 9 }, () => calm)).isSlow, true);
    assert.equal(seeing(t, slow, ...Array.from({ length: 10 }, () => calm)).isSlow, false);
    assert.equal(refused(seeing(t, slow, slow, slow)), 0);
  });

  test('an event loop counts as busy by its median delay: many long tasks do, one that is longer does not', async (t) => {
    const loop = new BusyLoop(log);
    t.after(() => loop.close());
    const block = (ms: number): void => {
      const until = performance.now() + ms;
      while (performance.now() < until);
    };
    await delay(100);
    for (let round = 0; round < 3; round++) {
      block(500);
      // It goes on working, in tasks that hold nothing up.
      for (const until = performance.now() + 400; performance.now() < until; ) {
        block(5);
        await yieldToEventLoop();
      }
    }
    assert.equal(loop.refusedPercent, 0);
    for (let task = 0; task < 12 && loop.refusedPercent === 0; task++) {
      block(400);
      await yieldToEventLoop();
      await yieldToEventLoop();
    }
    assert.ok(loop.refusedPercent > 0);
  });
});
