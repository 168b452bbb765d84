import assert from 'node:assert/strict';
import type { JobObject } from '../../api/pipeline/job-object.ts';
import { eventually } from './eventually.ts';
import type { TestGateway } from './gateway.ts';

/** A job as it is read once it has ended, however. @param ms how long it may take */
export async function endedJob(gateway: TestGateway, id: string | null, ms = 60_000): Promise<JobObject> {
  return await eventually(async () => {
    const job = (await (await gateway.fetch(`/v1/jobs/${id}`)).json()) as JobObject;
    assert.ok(typeof job.finished_at === 'number', `the job has not ended: ${JSON.stringify(job)}`);
    return job;
  }, ms);
}
