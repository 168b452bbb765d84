import { type BeginVerdict, readBeginReply } from '../../shared/jobs/attempt.ts';
import type { QueuedJob } from '../../shared/queue/queue.ts';
import { isReadable } from '../../shared/runtime/wire-version.ts';
import type { JobConsumerOptions } from './consumer.ts';

/** The verdict of `begin` in a claimed entry. An unreadable state yields undefined: the run then calls `begin` again and gets the reason. */
export function readVerdict(reply: string): BeginVerdict | undefined {
  const verdict = reply === '' ? undefined : readBeginReply(reply);
  return verdict?.verdict === 'unreadable' ? undefined : verdict;
}

/** Parses a queued job; undefined for invalid text. */
export function readQueuedJob(data: string): QueuedJob | 'other_version' | undefined {
  try {
    const job = JSON.parse(data) as QueuedJob | null;
    if (!isReadable(job?.v)) return 'other_version';
    return typeof job?.id === 'string' ? job : undefined;
  } catch {
    return undefined;
  }
}

/** The end of a job that is unreadable or has stalled too often: it is removed, as it would return forever. */
export async function quarantine(
  id: string,
  { log, capability }: Pick<JobConsumerOptions, 'log' | 'capability'>,
): Promise<'done'> {
  log.error({ job: id, capability }, 'queued job is unreadable or stalled too often; it is removed');
  return 'done';
}
