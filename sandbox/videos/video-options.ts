import { isAbsent, type JsonObject } from '../json-value.ts';
import {
  asObject,
  byteFaults,
  type FaultKind,
  type FaultOptions,
  jsonFaults,
  readFault,
  readNumber,
  readString,
} from '../request-options.ts';
import { invalidParameter } from '../wire-error.ts';

/** A fault of later calls about one video. */
export interface LaterFault {
  fault: FaultOptions;
  /** Number of calls that succeed first. */
  after: number;
  /** Number of calls that then get the fault; undefined: all. */
  times: number | undefined;
}

/**
 * How one video progresses: the member `video` of a request's `sandbox` options. It is stored with the video, since the calls
 * that follow have no options.
 */
export interface VideoOptions {
  /** Milliseconds from creation to end. */
  durationMilliseconds: number;
  /** Of these, milliseconds in the queue. */
  queuedMilliseconds: number;
  /** The video ends as failed, with this error. */
  failure: { code: string; message: string } | undefined;
  /** Progress reported by the first responses about a video in progress, instead of the real one: a vendor's progress may decrease. */
  progress: readonly number[];
  /** Applies to `GET /v1/videos/{id}`. */
  pollFault: LaterFault | undefined;
  /** Applies to `GET /v1/videos/{id}/content`; all kinds except `error` and `rate_limit` in the middle of the file. */
  contentFault: LaterFault | undefined;
}

const DAY = 86_400_000;
const MAXIMUM_STEPS = 1000;
const names = ['duration_ms', 'queued_ms', 'failure', 'progress', 'poll_fault', 'content_fault'];
const faultNames = ['kind', 'status', 'retry_after', 'code', 'message', 'after', 'times'];

/**
 * Parses the video options.
 * @throws WireError 400 naming the invalid or unknown member.
 */
export function readVideoOptions(value: unknown): VideoOptions {
  const name = 'sandbox.video';
  const options = isAbsent(value) ? {} : readMembers(value, name, names);
  const duration = readNumber(options, 'duration_ms', name, 0, DAY) ?? 2000;
  return {
    durationMilliseconds: duration,
    queuedMilliseconds: readNumber(options, 'queued_ms', name, 0, duration) ?? duration / 10,
    failure: readFailure(options.failure),
    progress: readProgress(options.progress),
    pollFault: readLaterFault(options, 'poll_fault', jsonFaults),
    contentFault: readLaterFault(options, 'content_fault', byteFaults),
  };
}

function readFailure(value: unknown): VideoOptions['failure'] {
  if (isAbsent(value)) return undefined;
  const name = 'sandbox.video.failure';
  const failure = readMembers(value, name, ['code', 'message']);
  return {
    code: readString(failure, 'code', name) ?? 'moderation_blocked',
    message: readString(failure, 'message', name) ?? 'Your request was blocked by our moderation system.',
  };
}

function readProgress(value: unknown): readonly number[] {
  if (isAbsent(value)) return [];
  const isPercentage = (step: unknown) => Number.isInteger(step) && (step as number) >= 0 && (step as number) <= 100;
  if (Array.isArray(value) && value.length <= MAXIMUM_STEPS && value.every(isPercentage)) return value;
  const message = `'sandbox.video.progress' must be an array of at most ${MAXIMUM_STEPS} whole numbers from 0 to 100.`;
  throw invalidParameter('sandbox.video.progress', message);
}

function readLaterFault(options: JsonObject, member: string, kinds: readonly FaultKind[]): LaterFault | undefined {
  const value = options[member];
  if (isAbsent(value)) return undefined;
  const name = `sandbox.video.${member}`;
  const members = readMembers(value, name, faultNames);
  const { times, ...fault } = readFault(members, name);
  if (!kinds.includes(fault.kind)) {
    throw invalidParameter(`${name}.kind`, `'${name}.kind' must be one of ${kinds.join(', ')}.`);
  }
  const after = readNumber(members, 'after', name, 0, Number.MAX_SAFE_INTEGER) ?? 0;
  return { fault: { ...fault, times: undefined }, after, times };
}

function readMembers(value: unknown, name: string, known: readonly string[]): JsonObject {
  const object = asObject(value, name);
  const unknown = Object.keys(object).find((member) => !known.includes(member));
  if (unknown === undefined) return object;
  const member = `${name}.${unknown.slice(0, 200)}`;
  throw invalidParameter(member, `'${member}' is not known: '${name}' takes ${known.join(', ')}.`);
}
