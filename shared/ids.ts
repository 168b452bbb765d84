import { hash, randomBytes, randomInt } from 'node:crypto';
import { withShard } from './redis/keys.ts';

const suffixPattern = /^[0-9a-f]{32}$/;
/** Job ids on the wire carry a prefix that identifies the view: one suffix, many prefixes. */
const wirePattern = /^[a-z]+[_-]([0-9a-f]{32})$/;

let pool = Buffer.alloc(0);
let offset = 0;

/** How long (ms) new jobs get the same shard, and how many: what is sent to Redis for them goes together, and to one node. */
const sameShardMs = 5;
const sameShardJobs = 32;

/** A process has one surrounding, and so one number of shards. */
let shards: number | undefined;
/** The shard of new jobs, since when, and how many have got it. */
let shard = 0;
let sameSince = 0;
let sameJobs = 0;

/** Limits new ids to those whose job tags have one of so many shards of the queues; undefined: no limit. */
export function limitJobTags(count: number | undefined): void {
  shards = count;
}

/** A new job id: a UUIDv7 (RFC 9562) as 32 hexadecimal digits, so that ids sort by creation time. */
export function newJobId(now: number = Date.now()): string {
  if (shards === undefined) return drawId(now);
  const given = nextShard(shards, now);
  for (;;) {
    const id = withShard(drawId(now), given);
    if (id !== undefined) return id;
  }
}

/** The shards take turns, so each gets as many jobs where they come evenly, or one by one. */
function nextShard(count: number, now: number): number {
  const isOver = Math.abs(now - sameSince) > sameShardMs || sameJobs >= sameShardJobs;
  if (shard === 0 || shard > count || isOver) {
    shard = shard === 0 ? 1 + randomInt(count) : 1 + (shard % count);
    sameSince = now;
    sameJobs = 0;
  }
  sameJobs++;
  return shard;
}

/** So many random bytes, at most 4090, in hexadecimal. They are drawn in blocks because one system call per request shows in a profile. */
export function randomHex(bytes: number): string {
  if (offset + bytes > pool.length) {
    pool = randomBytes(4090);
    offset = 0;
  }
  offset += bytes;
  return pool.toString('hex', offset - bytes, offset);
}

function drawId(now: number): string {
  const random = randomHex(10);
  const variant = '89ab'[Number.parseInt(random[3] as string, 16) & 3];
  return `${now.toString(16).padStart(12, '0')}7${random.slice(0, 3)}${variant}${random.slice(4, 19)}`;
}

/** The job id inside a wire id (`job_x`, `chatcmpl-x`, or the bare id); undefined for other ids. */
export function jobIdFromWire(id: string): string | undefined {
  if (suffixPattern.test(id)) return id;
  return wirePattern.exec(id)?.[1];
}

/** Whether a wire id is that of a request without a job. */
export function isRequestId(id: string): boolean {
  return id.startsWith('req_');
}

/** An id for this process, unique among all that share a Redis: channels and leases use it. */
export function newProcessId(role: string): string {
  return `${role}-${randomHex(9)}`;
}

/** BullMQ rejects bare integers and colons in ids; the prefix keeps 32 digits from being an integer. (admit.lua builds it, too.) */
const entryPrefix = 'job_';

/** The id of a job in the queue. */
export function entryIdOf(jobId: string): string {
  return `${entryPrefix}${jobId}`;
}

/** The job of an id in the queue. */
export function jobIdOfEntry(entryId: string): string {
  return entryId.slice(entryPrefix.length);
}

/** SHA-256 of the whole text of an API key, hexadecimal: the only form in which a key is stored or looked up. */
export function hashApiKey(text: string): string {
  return hash('sha256', text);
}
