/**
 * Every Redis key the gateway uses, laid out for Redis Cluster: what one script touches shares one hash tag. docs/redis.md
 * describes each of them.
 * - `{a0}`…`{a63}` by job: state, log and inboxes (begin, append, finish, renew, attach).
 * - `{m0}`…`{m63}` by account: key flags, holds, running sets, idempotency bindings, outboxes (admit, settle).
 * - one tag per queue, for BullMQ's keys (see queue.ts) and the virtual clock (see fairness-clock.ts).
 * - `{refused}`: what is kept of refused requests.
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
  /** Start of the channel names next to this job; a process id completes it. */
  inboxPrefix: (jobId: string): string => `${root}:{a${tagOf(jobId)}}:inbox:`,
  /** All channels on which a process can be told something: one per tag. */
  inboxes: (processId: string): string[] =>
    Array.from({ length: tagCount }, (_, tag) => `${root}:{a${tag}}:inbox:${processId}`),
  tag: tagOf,
};

/**
 * Keys of one account's admission. `admit` and `settle` are given the prefix of the tag and the names in it (`key:…`), for
 * each key that a call names costs the client more than a word does.
 */
export const accountKeys = {
  /** Start of all keys of an account's tag. */
  prefix: (account: string): string => `${root}:{m${tagOf(account)}}:`,
  /**
   * An account as admission sees it (hash). `credit`: what it was given in all, in nano-dollars, or '' where it is not
   * limited; absent means: ask the database. `charged`: what its settled jobs have cost; `held`: what those under way may
   * cost; `suspended`: `1` or `0`; `n:<capability>`: its unfinished jobs; `last:<capability>`: see fairness in admit.lua;
   * `raised`: see raise.lua; `loading`: see load-account.lua.
   */
  account: (account: string): string => `${root}:{m${tagOf(account)}}:account:${account}`,
  /** What held jobs of the tag have reserved (hash, by job id); jobs that reserve nothing are not in it. */
  reserved: (account: string): string => `${root}:{m${tagOf(account)}}:reserved`,
  /**
   * What an API key has spent of its budget (hash): `period` and when it began (`from`), `spent` and `held` in it, in
   * nano-dollars; `raised`: see raise.lua.
   */
  budget: (account: string, apiKeyId: string): string => `${root}:{m${tagOf(account)}}:budget:${apiKeyId}`,
  /** An API key's rates (hash); see admit.lua. */
  rate: (account: string, apiKeyId: string): string => `${root}:{m${tagOf(account)}}:rate:${apiKeyId}`,
  /** The revision of an API key while it is active, `0` once revoked; absent means: ask the database. */
  keyActive: (account: string, apiKeyId: string): string => `${root}:{m${tagOf(account)}}:key:${apiKeyId}`,
  /** Sorted set of the jobs a key has running: member job id, score its start. */
  running: (account: string, apiKeyId: string): string => `${root}:{m${tagOf(account)}}:running:${apiKeyId}`,
  /** Sorted set of all holds of the tag: member `job account key capability`, score the time the sweeper looks at it next. */
  holds: (account: string): string => `${root}:{m${tagOf(account)}}:holds`,
  /** Every holds key there is, for the sweeper. */
  allHolds: (): string[] => Array.from({ length: tagCount }, (_, tag) => `${root}:{m${tag}}:holds`),
  /** Stream of the records of settled jobs of the tag, on their way into the database. */
  outbox: (account: string): string => `${root}:{m${tagOf(account)}}:outbox`,
  /** Every outbox there is, for its consumers. */
  allOutboxes: (): string[] => Array.from({ length: tagCount }, (_, tag) => `${root}:{m${tag}}:outbox`),
  /** Hash binding an idempotency key to a job: `job`, `body`. */
  idempotency: (account: string, keyHash: string): string => `${root}:{m${tagOf(account)}}:idempotency:${keyHash}`,
  tag: tagOf,
};

/** What workers say of themselves. */
export const workerKeys = {
  /** Sorted set of the workers that are there: member worker id, score when it was last heard of. */
  seen: `${root}:workers`,
  report: (workerId: string): string => `${root}:worker:${workerId}`,
  /** A worker asks, or has just asked, whether a vendor takes a key. */
  keyCheck: (vendor: string, keyId: string): string => `${root}:key-check:${vendor}:${keyId}`,
};

/** Requests that were refused, see api/refused-requests. */
export const refusedKeys = {
  /** What is kept of each (hash, by id). */
  rows: `${root}:{refused}:rows`,
  /** Sorted set of `id account`, by time. */
  all: `${root}:{refused}:all`,
  /** Start of the names of accounts' own: sorted sets of ids, by time. */
  accounts: `${root}:{refused}:of:`,
};

/** Names the place where the blobs of all processes lie, as long as one of them runs. */
export const blobStorageKey = `${root}:blob-storage`;

/** Job records that the database has refused (list), see api/ledger/outbox/quarantine.ts. */
export const quarantineKey = `${root}:quarantine`;

/** The spools that hold job records (hash): the name of each, and when it was last said, in ms since 1970. */
export const spoolsKey = `${root}:spools`;

/** How often something that is limited was tried of late; `hash` names what, and by whom. */
export function attemptsKey(hash: string): string {
  return `${root}:attempts:${hash}`;
}

/** BullMQ's key prefix of a queue: one hash tag per queue, so that its scripts stay on one node of a Cluster. */
export function queuePrefix(queue: string): string {
  return `${root}:{q-${queue}}`;
}
