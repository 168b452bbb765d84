import { jobKeys } from '../../redis/keys.ts';
import type { RedisClient } from '../../redis/redis.ts';
import { inBatches, loadScript, readVerdict, refusalScript, shareNode, untilAccepted } from '../../redis/script.ts';
import { writtenVersion } from '../../runtime/wire-version.ts';
import { type Ownership, ownerships } from '../append.ts';
import { groupByTag } from '../group-by-tag.ts';
import { leaseMs, leaseScript } from '../job-state.ts';

/** From this version on, processes find a silent job's lease among those of its tag; see lease.lua. */
const gatheredVersion = 2;

/** Jobs of one script call: it takes Redis about a millisecond, and costs two commands for each tag. */
const maxJobs = 500;

const renewScript = loadScript<string[]>(new URL('./renew.lua', import.meta.url), refusalScript, leaseScript);
const progressScript = loadScript<string[]>(new URL('./read-progress.lua', import.meta.url), leaseScript);

/** An attempt at a job, which its lease belongs to. */
export interface LeasedJob {
  readonly jobId: string;
  readonly attempt: number;
}

/**
 * Renews the leases on jobs whose vendors are silent, in few calls; see renew.lua.
 * @param onRenewed called for each job with whether its attempt still owns it, or why its lease could not be renewed
 */
export async function renewLeases<Job extends LeasedJob>(
  redis: RedisClient,
  jobs: readonly Job[],
  onRenewed: (job: Job, ownership: Ownership | Error) => void,
): Promise<void> {
  const renewSome = async (some: readonly Job[]): Promise<void> => {
    const keys = some.map(({ jobId }) => jobKeys.state(jobId));
    const gathers = writtenVersion() >= gatheredVersion ? '1' : '';
    const args = [leaseMs, gathers, ...some.map(({ attempt }) => attempt)];
    try {
      const replies = await untilAccepted(() => renewScript(redis, keys, args));
      for (const [index, job] of some.entries()) onRenewed(job, readVerdict(ownerships, replies[index]));
    } catch (error) {
      for (const job of some) onRenewed(job, error instanceof Error ? error : new Error(String(error)));
    }
  };
  await Promise.all(groupByTag(redis, jobs, maxJobs).map(renewSome));
}

/** How far a job is. */
export interface JobProgress {
  /** Its last committed sequence number. */
  readonly seq: number;
  readonly hasEnded: boolean;
  /** By Redis's clock, as `ownedUntil`. */
  readonly deadlineAt: number;
  /** Until when an attempt owns it whose vendor is silent; 0: none such. */
  readonly ownedUntil: number;
}

/**
 * How far a job is; undefined if there is no such job. Called every few seconds for each silent stream, so it reads no more than
 * that, and for many of them in one call.
 */
export const readJobProgress = inBatches(readProgressOfAll, shareNode, undefined, maxJobs);

async function readProgressOfAll(
  redis: RedisClient,
  calls: readonly { readonly jobId: string }[],
): Promise<(JobProgress | undefined | Error)[]> {
  // Those of a tag one after the other, and back in the order of the calls.
  const order = [...calls.keys()].sort((one, other) => tagAt(calls, one) - tagAt(calls, other));
  const keys = order.map((index) => jobKeys.state((calls[index] as { jobId: string }).jobId));
  const replies = await progressScript(redis, keys, []);
  const progress: (JobProgress | undefined | Error)[] = new Array(calls.length).fill(undefined);
  for (const [position, index] of order.entries()) progress[index] = readReply(replies[position] ?? '');
  return progress;
}

function tagAt(calls: readonly { readonly jobId: string }[], index: number): number {
  return jobKeys.tag((calls[index] as { jobId: string }).jobId);
}

function readReply(text: string): JobProgress | undefined | Error {
  if (text === '') return undefined;
  if (text.startsWith('error ')) return new Error(text);
  const [seq, ended, deadline, owned] = text.split(' ');
  return { seq: Number(seq), hasEnded: ended === '1', deadlineAt: Number(deadline), ownedUntil: Number(owned) };
}
