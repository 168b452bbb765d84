import { unlessMissing } from '../../shared/blobs/blob-storage.ts';
import type { JobIdentity } from '../../shared/jobs/job-state.ts';
import { expired } from '../replies/unreadable-answer.ts';
import type { ViewedJob } from '../replies/view.ts';
import type { Services } from '../services.ts';
import { readViewOptions, viewOptionsBlob } from './view-options.ts';

/**
 * The job as its view may see it. Links last as long as results do, counted from when the job was made.
 * @param baseUrl that of the request which the answer is for
 * @throws ApiError 410 when what the view needs has expired.
 */
export async function viewJob(
  { blobs, resultLinks, config }: Pick<Services, 'blobs' | 'resultLinks' | 'config'>,
  job: JobIdentity,
  baseUrl: string,
): Promise<ViewedJob> {
  const isInBlob = viewOptionsBlob(job.viewOptions) !== undefined;
  const viewOptions = isInBlob
    ? await unlessMissing(readViewOptions(blobs.ofRecords(job.account), job.viewOptions))
    : job.viewOptions;
  if (viewOptions === undefined) throw expired();
  return {
    id: job.id,
    model: job.model,
    createdAt: job.createdAt,
    viewOptions: JSON.parse(viewOptions) as object,
    link: (file) => resultLinks.link(baseUrl, { account: job.account, file }, job.createdAt + config.resultMs),
  };
}
