import { unlessMissing } from '../../shared/blobs/blob-storage.ts';
import type { Blobs } from '../../shared/blobs/blobs.ts';
import type { Config } from '../../shared/config/config.ts';
import type { JobIdentity } from '../../shared/jobs/job-state.ts';
import type { ResultLinks } from '../results/result-links.ts';
import { expired } from './unreadable-answer.ts';
import type { ViewedJob } from './view.ts';
import { readViewOptions, viewOptionsBlob } from './view-options.ts';

/** Dependencies of `viewJob`. */
export interface ViewJobDependencies {
  readonly blobs: Blobs;
  readonly resultLinks: ResultLinks;
  readonly config: Config;
}

/**
 * The job as seen by its view. Links last as long as results, counted from the job's creation.
 * @param baseUrl of the request that gets the answer
 * @throws ApiError 410 when data for the view has expired.
 */
export async function viewJob(
  { blobs, resultLinks, config }: ViewJobDependencies,
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
