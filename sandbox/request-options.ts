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

/** Kinds of faults; see `FaultOptions`. */
export type FaultKind = (typeof faultKinds)[number];

/**
 * A fault requested by one request.
 * - `silence`: nothing more is sent until the client disconnects; without `after_tokens` not even headers.
 * - `reset`: the connection is reset; without `after_tokens` before any header.
 * - `malformed`: a token is replaced by an event that is not JSON, then the stream continues; not streamed: a body that is
 *   not JSON.
 * - `error`: a 4xx or 5xx response; with `after_tokens` in a stream an error event, then the end.
 * - `rate_limit`: 429 with Retry-After; with `after_tokens` like `error`.
 * - `eof`: the stream ends cleanly, without finish_reason and `[DONE]`; not streamed: the body is truncated.
 * - `no_done`: complete except for `[DONE]`.
 * - `no_usage`: complete except for the usage, even if a stream was asked for it.
 * - `slow_bytes`: the answer is correct, but written a byte or a few at a time, lines ending in CRLF.
 * - `large_event`: one event of `bytes` bytes among the others, a token of that size; not streamed: the body contains that
 *   token.
 * - `failed_event`: for a response: its stream ends with `response.failed`; not streamed: a response with the status failed.
 */
export interface FaultOptions {
  kind: FaultKind;
  /** Tokens written before the fault; for media: images, or pieces of audio. */
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
 * Speed and fault of one request: the request field `sandbox` (in a form its JSON text), or the header `x-sandbox` with the
 * same JSON. For videos it has another member, `video`: see `VideoOptions`.
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
 * Parses the options of a request. The field takes precedence over the header, member by member.
 * @throws WireError 400 naming the invalid member.
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

/**
 * The options of an answer for which only these kinds of fault are possible.
 * @throws WireError 400 for any other.
 */
export function limitFault(options: RequestOptions, faults: readonly FaultKind[]): RequestOptions {
  const kind = options.fault?.kind;
  if (kind === undefined || faults.includes(kind)) return options;
  throw invalidParameter('sandbox.fault.kind', `'sandbox.fault.kind' must be one of ${faults.join(', ')} here.`);
}

/** The options as sent, in the field and in the header. */
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

/**
 * Checks that a member is an object.
 * @throws WireError 400 naming the member if it is not.
 */
export function asObject(value: unknown, name: string): JsonObject {
  if (!isObject(value)) throw invalidParameter(name, `'${name}' must be an object.`);
  return value;
}

/** A fault whose occurrences are counted by its key. */
function readKeyedFault(value: unknown): FaultOptions {
  const name = 'sandbox.fault';
  const fault = readFault(value, name);
  if (fault.times !== undefined && fault.key === undefined) {
    throw invalidParameter(`${name}.key`, `'${name}.times' needs '${name}.key': what to count the requests by.`);
  }
  return fault;
}

/**
 * Parses a fault.
 * @param name its path in the request.
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

/**
 * Parses a number of the options.
 * @param parent the object's path in the request.
 */
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

/**
 * Parses a text of the options.
 * @param parent the object's path in the request.
 */
export function readString(from: JsonObject, name: string, parent: string): string | undefined {
  const value = from[name];
  if (value === undefined || value === null || typeof value === 'string') return value ?? undefined;
  throw invalidParameter(`${parent}.${name}`, `'${parent}.${name}' must be a string.`);
}

const MAXIMUM_KEYS = 10_000;

/** Counts, per key, how many requests got their fault; the least recently used key is evicted first. */
export class FaultCounter {
  readonly #met = new Map<string, number>();

  /** The fault of this request: the requested one, unless its key has reached its limit. */
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

/** The faults possible for any media answer; `malformed` needs JSON to break. */
export const byteFaults: readonly FaultKind[] = ['silence', 'reset', 'error', 'rate_limit', 'eof', 'slow_bytes'];

/** The faults possible for an answer of JSON, or of events. */
export const jsonFaults: readonly FaultKind[] = [...byteFaults, 'malformed'];
