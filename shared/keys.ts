/**
 * Every Redis key the gateway uses, laid out for Redis Cluster: what one script touches shares one hash tag.
 * - `{a0}`…`{a63}` by job: state, log and inboxes (begin, append, finish, renew, attach).
 * - `{m0}`…`{m63}` by account: key flags, holds, running sets, idempotency bindings, outboxes (admit, settle).
 * - one tag per queue, which is BullMQ's own (see queue.ts).
 * - single keys that no script touches have no tag.
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

/** Keys of one account's admission. */
export const accountKeys = {
  /** `1` while an API key is active, `0` once revoked; absent means: ask the database. */
  keyActive: (account: string, apiKeyId: string): string => `${root}:{m${tagOf(account)}}:key:${apiKeyId}`,
  /** Sorted set of the jobs a key has running: member job id, score its start. */
  running: (account: string, apiKeyId: string): string => `${root}:{m${tagOf(account)}}:running:${apiKeyId}`,
  /** Sorted set of all holds of the tag: member `job:account:key`, score the time the sweeper looks at it next. */
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

/** Names the place where the blobs of all processes lie, as long as one of them runs. */
export const blobStorageKey = `${root}:blob-storage`;

/** BullMQ's key prefix of a queue: one hash tag per queue, so that its scripts stay on one node of a Cluster. */
export function queuePrefix(queue: string): string {
  return `${root}:{q-${queue}}`;
}
