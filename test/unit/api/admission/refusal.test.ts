import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Admission } from '../../../../api/admission/ask-admission.ts';
import { refusal } from '../../../../api/admission/refusal.ts';
import type { Submission } from '../../../../api/admission/submission.ts';
import type { Config } from '../../../../shared/config/config.ts';

const config = { queueLimit: 20_000, queueWaitMs: 60_000 } as Config;

/** After how many ms a caller may repeat a request that found the queue full. @param msPerJob how fast the queue drains */
function retryAfter(verdict: 'queue_full' | 'queue_share', msPerJob: number | undefined): number | undefined {
  const load = { drainMs: (_: string, jobs: number) => (msPerJob === undefined ? undefined : msPerJob * jobs) };
  const admission = { reply: { verdict, detail: '18' }, caller: {} } as unknown as Admission;
  const submission = { job: { capability: 'chat' } } as unknown as Submission;
  return refusal(admission, { config, load }, submission).retryAfterMs;
}

test('who finds the queue full may retry once a tenth of it has drained at the measured rate: after a second at least, a minute at most', () => {
  for (const verdict of ['queue_full', 'queue_share'] as const) {
    assert.equal(retryAfter(verdict, 4), 8000);
    assert.equal(retryAfter(verdict, 0.001), 1000);
    assert.equal(retryAfter(verdict, 5000), 60_000);
  }
});

test('who finds the queue full while its rate is not known may retry after ten seconds', () => {
  assert.equal(retryAfter('queue_full', undefined), 10_000);
});
