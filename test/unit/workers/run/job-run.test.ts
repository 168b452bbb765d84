import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import type { QueuedJob } from '../../../../shared/queue/queue.ts';
import type { RedisClient } from '../../../../shared/redis/redis.ts';
import { createLogger } from '../../../../shared/runtime/log.ts';
import { JobRun, RunningJobs } from '../../../../workers/run/job-run.ts';

const runOf = (id: string) => new JobRun({ id } as QueuedJob);

test('RunningJobs stops a job on its abort, also when the abort arrives before the job is added', (t) => {
  const running = new RunningJobs({} as RedisClient, createLogger('silent', 'test').log);
  t.after(() => running.close());
  const [late, other] = [runOf('1'.repeat(32)), runOf('2'.repeat(32))];
  running.abort(late.jobId);
  running.add(late);
  running.add(other);
  assert.deepEqual([late.stopReason, late.signal.aborted], ['ended', true]);
  assert.equal(other.stopReason, undefined);
  running.abort(other.jobId);
  assert.equal(other.stopReason, 'ended');
  // Only the last ones are remembered: what it keeps is bounded.
  for (let abort = 0; abort < 1000; abort++) running.abort(abort.toString(16).padStart(32, 'a'));
  const forgotten = runOf(late.jobId);
  running.add(forgotten);
  assert.equal(forgotten.stopReason, undefined);
});

test('a lease is renewed in time after the clock of its host was put back by an hour', async (t) => {
  let renewals = 0;
  const redis = {
    defineCommand: (name: string) => {
      Object.assign(redis, {
        [name]: async () => {
          renewals++;
          return ['ok'];
        },
      });
    },
  } as unknown as RedisClient;
  const running = new RunningJobs(redis, createLogger('silent', 'test').log);
  t.after(() => running.close());
  const run = runOf('3'.repeat(32));
  run.attempt = 1;
  running.add(run);
  const now = Date.now;
  t.mock.method(Date, 'now', () => now() - 3_600_000);
  // A lease lasts 10 s.
  await delay(5500);
  assert.ok(renewals > 0, 'others take the job for lost');
});
