import { isObject, type JsonObject } from './json-value.ts';
import { invalidParameter, WireError } from './wire-error.ts';

const faultKinds = [
  'silence',
  'reset',
  'malformed',
  'error',
  'rate_limit',
  'eof',
  'no_done',
  'no_usage',
  'slow_bytes',
  'large_event',
  'failed_event',
] as const;

/** What can be asked to go wrong; see `FaultOptions`. */
export type FaultKind = (typeof faultKinds)[number];

/**
 * A fault asked for by one request.
 * - `silence`: nothing more is said until the client leaves; without `after_tokens` not even headers.
 * - `reset`: the connection is reset; without `after_tokens` before any header.
 * - `malformed`: in place of a token comes an event that is not JSON, then the stream goes on; held: a body that is not JSON.
 * - `error`: a 4xx or 5xx answer; with `after_tokens` in a stream an error event, then the end.
 * - `rate_limit`: 429 with Retry-After; with `after_tokens` like `error`.
 * - `eof`: the stream ends cleanly, without finish_reason and `[DONE]`; held: the body is cut short.
 * - `no_done`: everything is there but `[DONE]`.
 * - `no_usage`: everything is there but the usage, even where a stream was asked for it.
 * - `slow_bytes`: the answer is right, but written a byte or a few at a time, lines ending in CRLF.
 * - `large_event`: one event of `bytes` bytes among the others, a token of that size; held: the body holds that token.
 * - `failed_event`: of a response: its stream ends with `response.failed`; held: a response whose status is failed.
 */
export interface FaultOptions {
  kind: FaultKind;
  /** Tokens written before the fault; of media: images, or pieces of audio. */
  afterTokens: number | undefined;
  /** HTTP status of `error`. */
  status: number;
  /** Seconds, sent as Retry-After and retry-after-ms. */
  retryAfter: number | undefined;
  /** Code and message of the error, for `error` and `rate_limit`. */
  code: string | undefined;
  message: string | undefined;
  /** Size of a `large_event`. */
  bytes: number;
  /** Only the first `times` requests with this `key` meet the fault. */
  times: number | undefined;
  key: string | undefined;
}

/**
 * Speed and fault of one request: the request field `sandbox` (in a form its JSON text), or the header `x-sandbox`
 * holding the same JSON. Of videos it has another member, `video`: see `VideoOptions`.
 */
export interface RequestOptions {
  /** Milliseconds before the first token (and before the headers). */
  firstTokenMilliseconds: number;
  /** Undefined: as fast as possible. */
  tokensPerSecond: number | undefined;
  fault: FaultOptions | undefined;
}

const HOUR = 3_600_000;
const noOptions: RequestOptions = { firstTokenMilliseconds: 0, tokensPerSecond: undefined, fault: undefined };

/**
 * Reads the options of a request. The field wins over the header, member by member.
 * @throws WireError 400 naming the member that is wrong.
 */
export function readRequestOptions(field: unknown, header: string | string[] | undefined): RequestOptions {
  if ((field === undefined || field === null) && header === undefined) return noOptions;
  const options = joinOptions(field, header);
  return {
    firstTokenMilliseconds: readNumber(options, 'first_token_ms', 'sandbox', 0, HOUR) ?? 0,
    tokensPerSecond: readNumber(options, 'tokens_per_second', 'sandbox', 0.001, 1_000_000),
    fault: options.fault === undefined || options.fault === null ? undefined : readKeyedFault(options.fault),
  };
}

/** The options of an answer that only those kinds of fault can befall. @throws WireError 400 for any other. */
export function limitFault(options: RequestOptions, faults: readonly FaultKind[]): RequestOptions {
  const kind = options.fault?.kind;
  if (kind === undefined || faults.includes(kind)) return options;
  throw invalidParameter('sandbox.fault.kind', `'sandbox.fault.kind' must be one of ${faults.join(', ')} here.`);
}

/** The options as they were sent, in the field and in the header. */
export function joinOptions(field: unknown, header: string | string[] | undefined): JsonObject {
  return { ...parseHeader(header), ...asObject(field ?? {}, 'sandbox') };
}

function parseHeader(header: string | string[] | undefined): JsonObject {
  if (header === undefined) return {};
  try {
    return asObject(JSON.parse(String(header)), 'x-sandbox');
  } catch (error) {
    if (error instanceof WireError) throw error;
    throw invalidParameter('x-sandbox', 'The header x-sandbox must hold a JSON object.');
  }
}

/** @throws WireError 400 naming the member that is no object. */
export function asObject(value: unknown, name: string): JsonObject {
  if (!isObject(value)) throw invalidParameter(name, `'${name}' must be an object.`);
  return value;
}

/** A fault that counts by its key how often it has been met. */
function readKeyedFault(value: unknown): FaultOptions {
  const name = 'sandbox.fault';
  const fault = readFault(value, name);
  if (fault.times !== undefined && fault.key === undefined) {
    throw invalidParameter(`${name}.key`, `'${name}.times' needs '${name}.key': what to count the requests by.`);
  }
  return fault;
}

/**
 * Reads a fault.
 * @param name where it stands in the request.
 */
export function readFault(value: unknown, name: string): FaultOptions {
  const fault = asObject(value, name);
  const kind = faultKinds.find((known) => known === fault.kind);
  if (kind === undefined) {
    throw invalidParameter(`${name}.kind`, `'${name}.kind' must be one of ${faultKinds.join(', ')}.`);
  }
  return {
    kind,
    afterTokens: readNumber(fault, 'after_tokens', name, 0, Number.MAX_SAFE_INTEGER),
    status: readNumber(fault, 'status', name, 400, 599) ?? (kind === 'rate_limit' ? 429 : 500),
    retryAfter: readNumber(fault, 'retry_after', name, 0, HOUR) ?? (kind === 'rate_limit' ? 1 : undefined),
    code: readString(fault, 'code', name),
    message: readString(fault, 'message', name),
    bytes: readNumber(fault, 'bytes', name, 1, 268_435_456) ?? 1_048_576,
    times: readNumber(fault, 'times', name, 0, Number.MAX_SAFE_INTEGER),
    key: readString(fault, 'key', name),
  };
}

/** A number out of the options. @param parent where the object stands in the request. */
export function readNumber(
  from: JsonObject,
  name: string,
  parent: string,
  minimum: number,
  maximum: number,
): number | undefined {
  const value = from[name];
  if (value === undefined || value === null) return undefined;
  if (typeof value === 'number' && value >= minimum && value <= maximum) return value;
  throw invalidParameter(
    `${parent}.${name}`,
    `'${parent}.${name}' must be a number between ${minimum} and ${maximum}.`,
  );
}

/** A text out of the options. @param parent where the object stands in the request. */
export function readString(from: JsonObject, name: string, parent: string): string | undefined {
  const value = from[name];
  if (value === undefined || value === null || typeof value === 'string') return value ?? undefined;
  throw invalidParameter(`${parent}.${name}`, `'${parent}.${name}' must be a string.`);
}

const MAXIMUM_KEYS = 10_000;

/** Counts, per key, how many requests have met their fault; the key unused for the longest time is forgotten first. */
export class FaultCounter {
  readonly #met = new Map<string, number>();

  /** The fault this request meets: the one it asks for, unless its key has had enough of them. */
  due(fault: FaultOptions | undefined): FaultOptions | undefined {
    if (fault?.times === undefined || fault.key === undefined) return fault;
    const met = this.#met.get(fault.key) ?? 0;
    this.#met.delete(fault.key);
    this.#met.set(fault.key, met + 1);
    for (const oldest of this.#met.keys()) {
      if (this.#met.size <= MAXIMUM_KEYS) break;
      this.#met.delete(oldest);
    }
    return met < fault.times ? fault : undefined;
  }
}

/** The faults that any media answer can meet; `malformed` needs JSON to break. */
export const byteFaults: readonly FaultKind[] = ['silence', 'reset', 'error', 'rate_limit', 'eof', 'slow_bytes'];

/** The faults that an answer of JSON, or of events, can meet. */
export const jsonFaults: readonly FaultKind[] = [...byteFaults, 'malformed'];
