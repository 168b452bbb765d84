import type { Capability } from '../../../shared/capabilities/capability.ts';
import type { ErrorCode } from '../../../shared/errors.ts';
import type { JobIdentity, JobState, Outcome } from '../../../shared/jobs/job-state.ts';
import { accountKeys, jobKeys } from '../../../shared/redis/keys.ts';
import type { RedisClient } from '../../../shared/redis/redis.ts';
import { isReadable } from '../../../shared/runtime/wire-version.ts';
import { jobStatus } from '../../replies/view.ts';

/** Holds scanned per command, including those that the pattern filters out. */
const scanCount = 500;
/** Holds read in all; only the last commands may exceed it. */
const maxHolds = 10_000;
/** Newest states read in all, so that a backlog of thousands does not slow down requests being served. */
const maxStates = 2000;
/** States read concurrently. */
const statesAtOnce = 200;

/** Filter of unfinished jobs. Undefined fields match all jobs. */
export interface LiveJobFilter {
  readonly account: string | undefined;
  readonly status?: 'queued' | 'in_progress' | undefined;
  readonly capability?: Capability | undefined;
  readonly key?: string | undefined;
  readonly model?: string | undefined;
  readonly endpoint?: string | undefined;
}

/** A job's progress from its state. */
export type JobProgress = Pick<
  JobState,
  'attempt' | 'beganAt' | 'firstAt' | 'endedAt' | 'outcome' | 'errorCode' | 'errorDetails'
>;

/** An unfinished job, without its request. */
export type LiveJob = JobIdentity & JobProgress;

/**
 * Lists unfinished jobs in Redis, newest first: each has a hold until it is settled.
 * @returns at most `limit`, and whether there may be more
 */
export async function readLiveJobs(
  redis: RedisClient,
  filter: LiveJobFilter,
  limit: number,
): Promise<{ readonly jobs: LiveJob[]; readonly hasMore: boolean }> {
  const { ids, isAll } = await readHeldIds(redis, filter);
  const jobs: LiveJob[] = [];
  for (let from = 0; from < ids.length && jobs.length <= limit; from += statesAtOnce) {
    const read = await Promise.all(ids.slice(from, from + statesAtOnce).map((id) => readLiveJob(redis, id)));
    for (const job of read) if (job !== undefined && isWanted(job, filter)) jobs.push(job);
  }
  return { jobs: jobs.slice(0, limit), hasMore: jobs.length > limit || !isAll };
}

/** Reads a job's progress; undefined if Redis has no state of it. */
export async function readProgress(redis: RedisClient, id: string): Promise<JobProgress | undefined> {
  return (await readState(redis, id))?.progress;
}

async function readLiveJob(redis: RedisClient, id: string): Promise<LiveJob | undefined> {
  const state = await readState(redis, id);
  // A job keeps its hold between its end and its settlement.
  if (state === undefined || state.progress.outcome !== undefined) return undefined;
  const job = JSON.parse(state.job) as JobIdentity;
  // One of another version is not shown: its fields may mean something else.
  return isReadable(job.v) ? { ...job, ...state.progress } : undefined;
}

/** Omits the request in the state: it is not shown here, and may be long. */
async function readState(redis: RedisClient, id: string): Promise<{ job: string; progress: JobProgress } | undefined> {
  const fields = ['job', 'attempt', 'withdrawn', 'began', 'first', 'ended', 'terminal', 'error', 'details'] as const;
  const values = await redis.hmget(jobKeys.state(id), ...fields);
  const [job, attempt, withdrawn, began, first, ended, outcome, error, details] = values;
  if (!job) return undefined;
  const progress = {
    attempt: Number(attempt ?? 0) - Number(withdrawn ?? 0),
    beganAt: began ? Number(began) : undefined,
    firstAt: first ? Number(first) : undefined,
    endedAt: ended ? Number(ended) : undefined,
    outcome: (outcome || undefined) as Outcome | undefined,
    errorCode: (error || undefined) as ErrorCode | undefined,
    errorDetails: details ?? undefined,
  };
  return { job, progress };
}

function isWanted(job: LiveJob, { status, model, endpoint }: LiveJobFilter): boolean {
  if (status !== undefined && status !== jobStatus(job)) return false;
  return (model === undefined || job.model === model) && (endpoint === undefined || job.endpoint === endpoint);
}

/** Reads the ids of the newest held jobs, newest first. @returns `isAll`: there are no others */
async function readHeldIds(redis: RedisClient, filter: LiveJobFilter): Promise<{ ids: string[]; isAll: boolean }> {
  const { account } = filter;
  const keys = account === undefined ? accountKeys.allHolds() : [accountKeys.holds(account)];
  const ids = new Set<string>();
  const areAll = await Promise.all(keys.map((key) => readHolds(redis, key, filter, ids)));
  const newest = [...ids].sort((one, other) => (one < other ? 1 : -1)).slice(0, maxStates);
  return { ids: newest, isAll: areAll.every(Boolean) && newest.length === ids.size };
}

/** Adds ids of a key's held jobs, up to the maximum. @returns whether these are all of the key's */
async function readHolds(
  redis: RedisClient,
  holdsKey: string,
  { account, capability, key }: LiveJobFilter,
  ids: Set<string>,
): Promise<boolean> {
  // A member is `job account key capability`.
  const [owner, ownKey, kind] = [account, key, capability].map((word) => (word === undefined ? '*' : literally(word)));
  const match = `* ${owner} ${ownKey} ${kind}`;
  let cursor = '0';
  do {
    const [next, pairs] = await redis.zscan(holdsKey, cursor, 'MATCH', match, 'COUNT', scanCount);
    cursor = next;
    // Members and scores alternate. A pattern's star also matches spaces.
    for (let index = 0; index < pairs.length; index += 2) {
      const [job, jobOwner, jobKey, jobKind] = (pairs[index] as string).split(' ');
      const isOwn = (account ?? jobOwner) === jobOwner && (key ?? jobKey) === jobKey;
      if (job !== undefined && isOwn && (capability ?? jobKind) === jobKind) ids.add(job);
    }
  } while (cursor !== '0' && ids.size < maxHolds);
  return cursor === '0';
}

/** Escapes a text for a pattern of Redis. */
function literally(text: string): string {
  return text.replace(/[\\*?[\]]/g, '\\$&');
}
