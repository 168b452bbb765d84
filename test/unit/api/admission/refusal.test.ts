import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Admission } from '../../../../api/admission/ask-admission.ts';
import { refusal } from '../../../../api/admission/refusal.ts';
import type { Submission } from '../../../../api/admission/submission.ts';
import { capabilities } from '../../../../shared/capabilities/capability.ts';
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

test('who lacks the money for a request is told what to lower in terms of its capability, max_tokens only for a chat', () => {
  const advice = (capability: string, detail: string): string => {
    const admission = { reply: { verdict: 'budget', detail }, caller: {} } as unknown as Admission;
    const submission = { job: { capability } } as unknown as Submission;
    const { message } = refusal(admission, { config, load: { drainMs: () => undefined } }, submission);
    return message.slice(message.indexOf('. ', message.indexOf('remains')) + 2);
  };
  assert.equal(advice('chat', '9 5 0'), 'Lower max_tokens, or raise its budget.');
  assert.equal(advice('chat', '9 5 6'), 'Retry once they have ended, lower max_tokens, or raise its budget.');
  assert.equal(advice('image', '9 5 0'), 'Lower n, size or quality, or raise its budget.');
  assert.equal(advice('video', '9 5 6'), 'Retry once they have ended, lower seconds or size, or raise its budget.');
  for (const capability of capabilities) {
    assert.equal(advice(capability, '9 5 0').includes('max_tokens'), capability === 'chat', capability);
  }
});
