import assert from 'node:assert/strict';
import { test } from 'node:test';
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
