import type { Model } from '../catalogue/model.ts';
import { isReadable, leaveUnread, otherVersion, versionOf } from '../runtime/wire-version.ts';

/** A task that a vendor runs asynchronously for a job, as the job's state holds it from the vendor's response on. */
export interface VendorTask {
  /** The vendor running it: every later call goes there. */
  readonly vendor: string;
  /** Name of the key that created it, which does not reveal the key: no other key can poll it. */
  readonly account: string;
  /** The vendor's name of the model. */
  readonly model: string;
  /** The vendor's id of the task. */
  readonly task: string;
  /** The attempt that created it. Later claims only poll. */
  readonly attempt: number;
  /** Calls needed to create it; left out: one per attempt. */
  readonly calls?: number;
  /** When that attempt began, in ms since 1970. */
  readonly beganAt: number;
  /** The prices then, by which it is charged, whatever a reload changes or removes; left out: those of the catalogue at its end. */
  readonly prices?: Model['prices'];
}

/** Serializes the task for the state's field `task`. */
export function taskText(task: VendorTask): string {
  return JSON.stringify({ v: versionOf(), ...task });
}

/** Number of create calls made to vendors until one succeeded; records report it. */
export function callsFor({ calls, attempt }: VendorTask): number {
  return calls ?? attempt;
}

/**
 * Parses the state's field `task`.
 * @throws ApiError 503 if this build does not read its version: `isOtherVersion`.
 * @throws Error for invalid text, which means a defect.
 */
export function readTask(text: string): VendorTask {
  const { v, ...task } = JSON.parse(text) as VendorTask & { v?: number };
  if (isReadable(v)) return task;
  leaveUnread('task');
  throw otherVersion("a vendor's task");
}
