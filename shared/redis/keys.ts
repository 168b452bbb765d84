/**
 * Every Redis key the gateway uses, laid out for Redis Cluster: keys used by one script share one hash tag. docs/redis.md
 * describes each of them.
 * - `{a0}`…`{a63}` by job: state, log and inboxes (begin, append, finish, renew, attach).
 * - `{m0}`…`{m63}` by account: key flags, holds, running sets, idempotency bindings, outboxes (admit, settle).
 * - one tag per queue, for BullMQ's keys (see queue.ts), the lines of accounts and the virtual clock (see lines.lua).
 * - `{refused}`: refused requests.
 * - keys that share no script with another have no tag.
 */
const tagCount = 64;

const root = 'sluice';

/** FNV-1a over the characters, folded to a tag number. Stable across versions: stored keys depend on it. */
function tagOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < text.length; index++) {
    hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
  }
  return (hash >>> 0) % tagCount;
}

/** Keys of one job's answer. */
export const jobKeys = {
  state: (jobId: string): string => `${root}:{a${tagOf(jobId)}}:job:${jobId}`,
  log: (jobId: string): string => `${root}:{a${tagOf(jobId)}}:log:${jobId}`,
  /** Prefix of the channel names for this job; a process id completes it. */
  inboxPrefix: (jobId: string): string => `${root}:{a${tagOf(jobId)}}:inbox:`,
  /** All channels of a process: one per tag. */
  inboxes: (processId: string): string[] =>
    Array.from({ length: tagCount }, (_, tag) => `${root}:{a${tag}}:inbox:${processId}`),
  tag: tagOf,
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
   * `0`; `n:<capability>`: its unfinished jobs; `raised`: see raise.lua.
   */
  account: (account: string): string => `${root}:{m${tagOf(account)}}:account:${account}`,
  /** Name of the load in progress that will write the account; see load-account.lua. */
  loading: (account: string): string => `${root}:{m${tagOf(account)}}:loading:${account}`,
  /** Reservations of the tag's held jobs (hash, by job id); jobs that reserve nothing are not in it. */
  reserved: (account: string): string => `${root}:{m${tagOf(account)}}:reserved`,
  /**
   * An API key's use of its budget (hash): `period` and when it began (`from`), `spent` and `held` in it, in nano-dollars;
   * `raised`: see raise.lua.
   */
  budget: (account: string, apiKeyId: string): string => `${root}:{m${tagOf(account)}}:budget:${apiKeyId}`,
  /** An API key's rates (hash); see admit.lua. */
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
  /** Hash binding an idempotency key to a job: `job`, `body`. */
  idempotency: (account: string, keyHash: string): string => `${root}:{m${tagOf(account)}}:idempotency:${keyHash}`,
  tag: tagOf,
};

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

/** Job records rejected by the database (list), see api/ledger/outbox/quarantine.ts. */
export const quarantineKey = `${root}:quarantine`;

/** The spools that hold job records (hash): the name of each, and when it was last reported, in ms since 1970. */
export const spoolsKey = `${root}:spools`;

/** Recent number of attempts at a limited action; `hash` identifies the action and the caller. */
export function attemptsKey(hash: string): string {
  return `${root}:attempts:${hash}`;
}

/** BullMQ's key prefix of a queue: one hash tag per queue, so that its scripts stay on one node of a Cluster. */
export function queuePrefix(queue: string): string {
  return `${root}:{q-${queue}}`;
}
