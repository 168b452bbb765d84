import type { Capability } from '../capabilities/capability.ts';

/**
 * Every Redis key the gateway uses, laid out for Redis Cluster: keys used by one script share one hash tag. docs/redis.md
 * describes each of them.
 * - `{a0}`…`{a63}` by job: state, log, inboxes and leases (begin, append, finish, renew, attach).
 * - `{m0}`…`{m63}` by account: key flags, holds, running sets, idempotency bindings, outboxes (admit, settle).
 * - one tag per queue, for BullMQ's keys (see queuePrefix), the lines of accounts and the virtual clock (see lines.lua).
 * - `{journal}`: journals of workers (write-journal), which are not used on a Cluster.
 * - `{v0}`…`{v63}` by vendor: what of its capacity is used (reserve-call, return-calls).
 * - `{refused}`: refused requests.
 * - keys that share no script with another have no tag.
 */
const tagCount = 64;

const root = 'sluice';

/**
 * FNV-1a over the characters, modulo the number of tags: as that is a power of two, no step depends on higher bits of the one before.
 * Stable across versions: stored keys depend on it.
 */
function hashOf(text: string): number {
  let hash = 0x811c9dc5 % tagCount;
  for (let index = 0; index < text.length; index++) hash = nextHash(hash, text.charCodeAt(index));
  return hash;
}

function nextHash(hash: number, character: number): number {
  return ((hash ^ character) * (0x01000193 % tagCount)) % tagCount;
}

let lastText = '';
let lastTag = hashOf(lastText);
let textBefore = lastText;
let tagBefore = lastTag;

/** Keys are mostly made for one job and its account after the other, several for each: the last two tags are remembered. */
function tagOf(text: string): number {
  if (text === lastText) return lastTag;
  if (text === textBefore) return tagBefore;
  textBefore = lastText;
  tagBefore = lastTag;
  lastTag = hashOf(text);
  lastText = text;
  return lastTag;
}

/** Keys of one job's answer. */
export const jobKeys = {
  state: (jobId: string): string => `${root}:{a${tagOf(jobId)}}:job:${jobId}`,
  log: (jobId: string): string => `${root}:{a${tagOf(jobId)}}:log:${jobId}`,
  /** Leases on those jobs of the tag whose vendors are silent (hash); lease.lua builds its name, too. */
  leases: (jobId: string): string => `${root}:{a${tagOf(jobId)}}:leases`,
  /** Prefix of the channel names for this job; a process id completes it. */
  inboxPrefix: (jobId: string): string => `${root}:{a${tagOf(jobId)}}:inbox:`,
  /** All channels of a process: one per tag. */
  inboxes: (processId: string): string[] =>
    Array.from({ length: tagCount }, (_, tag) => `${root}:{a${tag}}:inbox:${processId}`),
  tag: tagOf,
};

/** Keys of one worker's journal, see shared/jobs/journal. journaled.lua builds the head's name, too. */
export const journalKeys = {
  /** Frames of its jobs (stream). */
  entries: (name: string): string => `${root}:{journal}:${name}`,
  /** Number of the last entry (`last`), and ids of jobs that others have ended (hash). */
  head: (name: string): string => `${root}:{journal}:${name}:head`,
};

/**
 * Keys of one account's admission. `admit` and `settle` get the tag's prefix and the names in it (`key:…`), as each key passed
 * in a call costs the client more than a plain argument.
 */
export const accountKeys = {
  /** Prefix of all keys of an account's tag. */
  prefix: (account: string): string => `${root}:{m${tagOf(account)}}:`,
  /**
   * An account as admission sees it (hash). `credit`: total credit granted, in nano-dollars, or '' if unlimited; absent means:
   * ask the database. `charged`: cost of its settled jobs; `held`: maximum cost of its unfinished jobs; `suspended`: `1` or
   * `0`; `weight`: its share of the queues; `n:<capability>`: its unfinished jobs; `raised`: see raise.lua.
   */
  account: (account: string): string => `${root}:{m${tagOf(account)}}:account:${account}`,
  /** Name of the load in progress that will write the account; see load-account.lua. */
  loading: (account: string): string => `${root}:{m${tagOf(account)}}:loading:${account}`,
  /** Reservations of the tag's held jobs (hash, by job id); jobs that reserve nothing are not in it. */
  reserved: (account: string): string => `${root}:{m${tagOf(account)}}:reserved`,
  /**
   * An API key's use of its budget (hash): `period` and when it began (`from`), `spent` and `held` in it, in nano-dollars;
   * `raised`: see raise.lua. Of a key that shares its budget only `common`: the name of the budget that has these.
   */
  budget: (account: string, name: string): string => `${root}:{m${tagOf(account)}}:budget:${name}`,
  /** An API key's rates (hash); see rate-buckets.lua. */
  rate: (account: string, apiKeyId: string): string => `${root}:{m${tagOf(account)}}:rate:${apiKeyId}`,
  /** The revision of an API key while it is active, `0` once revoked; absent means: ask the database. */
  keyActive: (account: string, apiKeyId: string): string => `${root}:{m${tagOf(account)}}:key:${apiKeyId}`,
  /** Sorted set of the jobs a key has running: member job id, score its start. */
  running: (account: string, apiKeyId: string): string => `${root}:{m${tagOf(account)}}:running:${apiKeyId}`,
  /** Sorted set of all holds of the tag: member `job account key capability` (see holdMember), score the time of the sweeper's next inspection. */
  holds: (account: string): string => `${root}:{m${tagOf(account)}}:holds`,
  /** Every holds key, for the sweeper. */
  allHolds: (): string[] => Array.from({ length: tagCount }, (_, tag) => `${root}:{m${tag}}:holds`),
  /** Stream of the records of settled jobs of the tag, on their way into the database. */
  outbox: (account: string): string => `${root}:{m${tagOf(account)}}:outbox`,
  /** Every outbox, for its consumers. */
  allOutboxes: (): string[] => Array.from({ length: tagCount }, (_, tag) => `${root}:{m${tag}}:outbox`),
  /** Hash binding an idempotency key to a job: `job`, `body`. Accounts of a tag share these names, see own-binding.ts. */
  idempotency: (account: string, keyHash: string): string => `${root}:{m${tagOf(account)}}:idempotency:${keyHash}`,
  /** The same for an account whose hash another account of the tag had bound. */
  ownIdempotency: (account: string, keyHash: string): string =>
    `${root}:{m${tagOf(account)}}:idempotency:${keyHash}:${account}`,
  /** The newest job of a request that its client library may retry (string); see `retryName`. */
  retry: (account: string, name: string): string => `${root}:{m${tagOf(account)}}:retry:${name}`,
  tag: tagOf,
};

/** Start of the keys of a vendor's capacity, see workers/pacing: its tag. */
export function capacityPrefix(vendor: string): string {
  return `${root}:{v${tagOf(vendor)}}:`;
}

/** What vendors' refusals have told of their capacity (hash), see workers/pacing/learned-limits.ts. */
export const vendorLimitsKey = `${root}:vendor-limits`;

/** Paused routes and refused keys (hash), see workers/routing/shared-health.ts. */
export const vendorHealthKey = `${root}:vendor-health`;

/** A key that is never written, and a channel on which nothing is published: for checks of rights at the start. */
export const rightsKey = `${root}:rights`;

/** Reports of the workers. */
export const workerKeys = {
  /** Sorted set of live workers: member worker id, score when it last reported. */
  seen: `${root}:workers`,
  report: (workerId: string): string => `${root}:worker:${workerId}`,
  /** Set while a worker checks, or has just checked, whether a vendor accepts a key. */
  keyCheck: (vendor: string, keyId: string): string => `${root}:key-check:${vendor}:${keyId}`,
};

/** Sorted set of running processes: member `id oldest newest` (the versions that it reads), score when it last reported. */
export const processesKey = `${root}:processes`;

/** Refused requests, see api/refused-requests. */
export const refusedKeys = {
  /** The stored requests (hash, by id). */
  rows: `${root}:{refused}:rows`,
  /** Sorted set of `id account`, by time. */
  all: `${root}:{refused}:all`,
  /** Prefix of the accounts' own sorted sets: ids, by time. */
  accounts: `${root}:{refused}:of:`,
};

/** A key's settings by the hash of its text (string), see shared/accounts/known-keys.ts. */
export function knownKey(hash: string): string {
  return `${root}:known-key:${hash}`;
}

/** Identity of the Redis that was last raised to the ledger (string), see api/ledger/redis-watch.ts. */
export const raisedKey = `${root}:raised`;

/** Held by the process that last began to delete expired jobs (string), see api/ledger/retention/job-retention.ts. */
export const jobRetentionKey = `${root}:job-retention`;

/** Name of the storage that holds the blobs of all processes, kept while one of them runs. */
export const blobStorageKey = `${root}:blob-storage`;

/** Identity of the database of all apis and ledgers, and of what they sign with, kept while one of them runs. */
export const databaseKey = `${root}:database`;
export const signingKey = `${root}:signing`;

/** Job records rejected by the database (list), see api/ledger/outbox/quarantine.ts. */
export const quarantineKey = `${root}:quarantine`;

/** The spools that hold job records (hash): the name of each, and when it was last reported, in ms since 1970. */
export const spoolsKey = `${root}:spools`;

/** Recent number of attempts at a limited action; `hash` identifies the action and the caller. */
export function attemptsKey(hash: string): string {
  return `${root}:attempts:${hash}`;
}

/**
 * BullMQ's key prefix of a queue: one hash tag per queue, so that its scripts stay on one node of a Cluster. A capability's queue
 * may have shards, which are queues of their own: 0 has a tag of its own, each other one a job tag, so that it lies on the node of
 * its jobs' states.
 */
export function queuePrefix(queue: string, shard = 0): string {
  return shard === 0 ? `${root}:{q-${queue}}` : `${root}:{a${shardTags[shard - 1]}}:q-${queue}`;
}

/** Start of the keys of a queue, as BullMQ names them. */
export function queueKeysPrefix(capability: Capability, shard = 0): string {
  return `${queuePrefix(capability, shard)}:${capability}:`;
}

/** Start of the gateway's own keys of a queue; see lines.lua. */
export function queueRoot(capability: Capability, shard = 0): string {
  return `${queuePrefix(capability, shard)}:`;
}

/**
 * The job tags in the order in which shards take them. By their slots, any number of them is spread evenly over three masters of a Cluster
 * with equal ranges of slots, the first 6 and 12 over six, and the first 12 over four and twelve. Stored keys depend on it.
 */
const shardTags = [
  ...[
    49, 26, 18, 12, 43, 28, 27, 13, 42, 48, 29, 19, 63, 35, 51, 53, 61, 33, 30, 50, 60, 44, 32, 7, 45, 22, 6, 4, 47, 24,
    23, 1,
  ],
  ...[
    46, 40, 25, 3, 41, 39, 59, 57, 21, 15, 38, 58, 20, 8, 36, 11, 56, 31, 2, 0, 54, 37, 34, 5, 55, 16, 9, 10, 52, 17,
    14, 62,
  ],
];

/** The number of the shard of each tag. */
const shardsByTag = Array.from({ length: tagCount }, (_, tag) => shardTags.indexOf(tag) + 1);

/** The shard that a job belongs to, of so many besides shard 0; 0: its tag has none. */
export function shardOfJob(jobId: string, shards: number): number {
  const shard = shardsByTag[tagOf(jobId)] as number;
  return shard <= shards ? shard : 0;
}

const digits = '0123456789abcdef';

/** The hexadecimal digit of each value that `hashOf` makes of one before it is multiplied; undefined: no digit has it. */
const digitsByValue: readonly (string | undefined)[] = Array.from({ length: tagCount }, (_, value) =>
  [...digits].find((digit) => digit.charCodeAt(0) % tagCount === value),
);

/** What `hashOf` multiplies, for each tag that comes of it. */
const factorsByTag = Array.from({ length: tagCount }, (_, tag) =>
  Array.from({ length: tagCount }, (_, value) => value).findIndex((value) => nextHash(0, value) === tag),
);

/**
 * The id of a job with other last two digits, so that it belongs to a shard. To draw whole ids until one does would be a tenth of an api's
 * work.
 * @param id with hexadecimal digits at its end, which are random
 * @param shard from 1 on
 * @returns undefined for one id in a hundred: no two digits make it one of its shard
 */
export function withShard(id: string, shard: number): string | undefined {
  const factor = factorsByTag[shardTags[shard - 1] as number] as number;
  const rest = id.slice(0, -2);
  const hash = hashOf(rest);
  const given = Number.parseInt(id.slice(-2, -1), 16);
  for (let tried = given; tried < given + 16; tried++) {
    const high = digits[tried & 15] as string;
    const low = digitsByValue[nextHash(hash, high.charCodeAt(0)) ^ factor];
    if (low !== undefined) return `${rest}${high}${low}`;
  }
  return undefined;
}

/** Numbers of shards that queues have, or had, which workers serve until nothing is in them (set). */
export const queueShardsKey = `${root}:queue-shards`;

/** Workers that consume a capability's queue (sorted set): member worker id, score until when they count. */
export function queueConsumersKey(queue: string): string {
  return `${queuePrefix(queue)}:consumers`;
}
