import type { JobConsumerOptions } from './consumer.ts';

/** The end of a job that is unreadable or has stalled too often: it is removed, as it would return forever. */
export async function quarantine(
  id: string,
  { log, capability }: Pick<JobConsumerOptions, 'log' | 'capability'>,
): Promise<'done'> {
  log.error({ job: id, capability }, 'queued job is unreadable or stalled too often; it is removed');
  return 'done';
}
