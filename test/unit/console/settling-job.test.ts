import assert from 'node:assert/strict';
import { test } from 'node:test';

interface Job {
  readonly ended_at: number | null;
  readonly cost: number | null;
}

// By its address: the console's types are checked apart from these.
const module = new URL('../../../console/src/api/jobs.ts', import.meta.url).href;
const { jobQuery } = (await import(module)) as {
  jobQuery: (id: string) => { refetchInterval: (query: { state: { data: Job } }) => number | false };
};
const isAskedAgain = (job: Job): boolean => jobQuery('job_1').refetchInterval({ state: { data: job } }) !== false;

test('the page of a job asks for its cost until that is there, or will not come, as for one that failed for nothing', () => {
  const now = Date.now();
  assert.equal(isAskedAgain({ ended_at: null, cost: null }), true);
  assert.equal(isAskedAgain({ ended_at: now - 1000, cost: null }), true);
  assert.equal(isAskedAgain({ ended_at: now - 1000, cost: 0.5 }), false);
  assert.equal(isAskedAgain({ ended_at: now - 60_000, cost: null }), false);
});
