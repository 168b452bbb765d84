import { Counter, type Registry } from 'prom-client';
import { ApiError } from '../errors.ts';

/**
 * Versions of what one process writes and another reads: queued jobs, states, records, holds, vendors' tasks, reports. A process reads
 * its own version and the one before. It writes the newest one that all running processes read (see process-registry.ts). What has
 * none is of version 1. See docs/redis.md, "Versions".
 */
export interface VersionRange {
  readonly oldest: number;
  readonly newest: number;
}

/** What this build reads. A release that changes a format raises both, so that it reads no more than two. */
export const readVersions: VersionRange = { oldest: 1, newest: 2 };

/** A process has one surrounding, and so one version that it writes. */
let written = readVersions.newest;

/** The newest version that all running processes read: what only newer ones know is not to be used. */
export function writtenVersion(): number {
  return written;
}

/**
 * The version to write as `v` of something that processes read from version `since` on. It is no newer than that: after a rollback
 * nobody reads what has a newer one, and what the release before can go on with must not wait for that.
 */
export function versionOf(since = readVersions.oldest): number {
  return Math.min(written, since);
}

/**
 * Sets the version to write to the newest that all of these processes read, and this one writes.
 * @returns whether each of them reads it: they may be more than one release apart
 */
export function writeFor(ranges: readonly VersionRange[], own: VersionRange = readVersions): boolean {
  written = Math.min(own.newest, ...ranges.map(({ newest }) => newest));
  return ranges.every(({ oldest }) => oldest <= written) && own.oldest <= written;
}

/** Whether this build reads a version; a missing one is 1. */
export function isReadable(version: unknown = 1): boolean {
  return typeof version === 'number' && version >= readVersions.oldest && version <= readVersions.newest;
}

/** What processes of another version are left to do. */
const kinds = ['job', 'state', 'task', 'hold'] as const;
type UnreadKind = (typeof kinds)[number];
const unread = new Map<UnreadKind, number>(kinds.map((kind) => [kind, 0]));

/** Counts something that this build cannot read and therefore leaves as it is. */
export function leaveUnread(kind: UnreadKind): void {
  unread.set(kind, (unread.get(kind) ?? 0) + 1);
}

/** Adds the count of what was left unread to a process's metrics. */
export function countUnread(registry: Registry): void {
  new Counter({
    name: 'sluice_left_unread_total',
    help: 'Times that something of another version was found and left to a process that can read it, by kind.',
    labelNames: ['kind'],
    registers: [registry],
    collect() {
      this.reset();
      for (const [kind, count] of unread) this.inc({ kind }, count);
    },
  });
}

/** Cause of an error about something of another version. */
class OtherVersion extends Error {}

/** The error for a caller whose job this build cannot read: a retry may be served by a process that can. */
export function otherVersion(what: string): ApiError {
  const message = 'This answer was written by another version of the gateway. Retry the request.';
  return new ApiError('service_unavailable', message, { cause: new OtherVersion(`${what} has another version`) });
}

/** Whether an error is one of `otherVersion`. */
export function isOtherVersion(error: unknown): boolean {
  return error instanceof ApiError && error.cause instanceof OtherVersion;
}
