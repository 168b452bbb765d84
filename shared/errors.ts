import { BlobStorageError } from './blobs/blob-storage.ts';
import { isDatabaseUnreachable } from './database/database-error.ts';
import { isRefusal } from './redis/script.ts';

/** One row of the error table: a code's meaning on the wire. */
interface ErrorRow {
  readonly status: number;
  readonly type: string;
  /** Whether the same request may succeed later (determines `x-should-retry` and `Retry-After`). */
  readonly retryable: boolean;
}

const invalid = (status: number): ErrorRow => ({ status, type: 'invalid_request_error', retryable: false });
const failure = (status: number, retryable: boolean): ErrorRow => ({ status, type: 'server_error', retryable });

/** Every error the gateway returns: the only mapping from a code to a status and a type. */
export const errorTable = {
  invalid_request_error: invalid(400),
  context_length_exceeded: invalid(400),
  previous_response_not_found: invalid(400),
  /** For response sockets: their lanes, and their maximum duration of an hour. The names are OpenAI's. */
  invalid_stream_id: invalid(400),
  websocket_stream_limit_reached: invalid(400),
  websocket_connection_limit_reached: invalid(400),
  invalid_api_key: invalid(401),
  permission_denied: invalid(403),
  not_found: invalid(404),
  model_not_found: invalid(404),
  method_not_allowed: invalid(405),
  request_timeout: invalid(408),
  resume_expired: invalid(410),
  request_too_large: invalid(413),
  unsupported_media_type: invalid(415),
  range_not_satisfiable: invalid(416),
  expectation_failed: invalid(417),
  idempotency_key_reused: invalid(422),
  upgrade_required: invalid(426),
  headers_too_large: invalid(431),
  insufficient_quota: { status: 429, type: 'insufficient_quota', retryable: false },
  rate_limit_exceeded: { status: 429, type: 'rate_limit_exceeded', retryable: true },
  /** The caller (or another holder of the job id) cancelled; nginx's 499 is what proxies log for it. */
  cancelled: invalid(499),
  server_error: failure(500, true),
  /** The answer broke off after output had been committed: calling the vendor again would repeat it. */
  stream_interrupted: failure(500, false),
  /** The vendor may or may not have done the work, and it must not be done twice. */
  outcome_unknown: failure(500, false),
  service_unavailable: failure(503, true),
  timeout: failure(504, true),
} as const satisfies Record<string, ErrorRow>;

export type ErrorCode = keyof typeof errorTable;

/** Why a request gets a 429 or a 503, as a label of metrics: these codes tell callers what to do, not operators what is short. */
const refusalReasons = [
  ...([
    'balance',
    'budget',
    'concurrency',
    'rate_limit',
    'queue_share',
    'line_wait',
    'wrong_keys',
    'sockets',
    'attempts',
  ] as const),
  ...([
    'queue_full',
    'queue_wait',
    'cpu',
    'queue_unavailable',
    'redis_memory',
    'database',
    'disk',
    'bodies',
    'large_bodies',
  ] as const),
  ...(['no_worker', 'lost', 'key_changing', 'shutting_down', 'vendor', 'other'] as const),
];
export type RefusalReason = (typeof refusalReasons)[number];

export interface ApiErrorOptions {
  /** The request field at fault, as a path: `messages[0].content`. */
  readonly param?: string | null;
  /** The vendor's own, more exact code (`context_length_exceeded`, …), shown instead of ours. */
  readonly vendorCode?: string | null;
  /** For Anthropic's clients, which evaluate it: `error.details` of that API's errors. */
  readonly details?: Readonly<Record<string, unknown>>;
  /** When to retry, in milliseconds; becomes `Retry-After` and `retry-after-ms`. */
  readonly retryAfterMs?: number;
  /**
   * `false`: retries are useless until someone fixes the cause, whatever the code; `true`: the cause passes by itself. Left out:
   * according to the code.
   */
  readonly retryable?: boolean;
  /** What a 429 or 503 is due to, for operators. */
  readonly reason?: RefusalReason | undefined;
  /** The vendor's message when it refused the operator's key: for operators only. Not sent across the queue. */
  readonly vendorSentence?: string | null;
  /** Set if the message is in the vendor's own words, which may quote the request. Not sent across the queue. */
  readonly isQuoted?: boolean;
  /** The vendor's HTTP status, which indicates whether another call may succeed. Not sent across the queue. */
  readonly vendorStatus?: number;
  /** Response headers in addition to those of the code. Not sent across the queue. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly cause?: unknown;
}

/** An error as sent across the queue, inside an `error` frame. */
export interface ErrorData {
  readonly code: ErrorCode;
  readonly message: string;
  readonly param?: string | null;
  readonly vendorCode?: string | null;
  readonly details?: Readonly<Record<string, unknown>>;
  readonly retryAfterMs?: number;
  readonly retryable?: boolean;
  /** A `RefusalReason`; left out: the vendor's. */
  readonly reason?: string;
}

/** Maximum random delay (ms) added to spread callers that would retry at the same moment. */
const maxSpreadMs = 10_000;
/** OpenAI's clients ignore a delay of this length (ms) or longer and retry within seconds. */
const obeyedMs = 60_000;

/** Lengthens a retry delay by up to as long again, so that callers refused together do not retry together. */
function spread(ms: number): number {
  const later = Math.ceil(ms + Math.random() * Math.min(ms, maxSpreadMs));
  return ms < obeyedMs ? Math.min(later, obeyedMs - 1) : later;
}

/** Maximum characters of an error's message: it may contain names of megabytes that a caller has chosen. A vendor's is shorter. */
const maxMessage = 8000;
/** The same of the path of its field. */
export const maxParam = 500;

function shortened(text: string, max: number): string {
  return text.length <= max ? text : `${text.slice(0, max)}…`;
}

/** A failure meant for the caller. Its message must be free of secrets and prompts. */
export class ApiError extends Error {
  readonly code: ErrorCode;
  readonly param: string | null;
  readonly vendorCode: string | null;
  readonly details: Readonly<Record<string, unknown>> | undefined;
  readonly retryAfterMs: number | undefined;
  readonly vendorStatus: number | undefined;
  /** Whether the message is in the vendor's own words, which may quote the request. */
  readonly isQuoted: boolean;
  readonly isRetryable: boolean;
  readonly #reason: RefusalReason | undefined;
  readonly #headers: Readonly<Record<string, string>> | undefined;
  /** Private, so that logging or showing the whole error does not reveal it. */
  readonly #vendorSentence: string | null;

  constructor(code: ErrorCode, message: string, options: ApiErrorOptions = {}) {
    super(shortened(message, maxMessage), options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'ApiError';
    this.code = code;
    this.param = options.param == null ? null : shortened(options.param, maxParam);
    this.vendorCode = options.vendorCode ?? null;
    this.details = options.details;
    this.vendorStatus = options.vendorStatus;
    this.isQuoted = options.isQuoted ?? false;
    this.#vendorSentence = options.vendorSentence ?? null;
    this.#reason = options.reason;
    this.isRetryable = options.retryable ?? errorTable[code].retryable;
    this.#headers = options.headers;
    const usual = errorTable[code].status === 503 && this.isRetryable ? 1000 : undefined;
    this.retryAfterMs = options.retryAfterMs ?? usual;
  }

  /** The vendor's message when it refused the operator's key; null if none did. */
  get vendorSentence(): string | null {
    return this.#vendorSentence;
  }

  /** What a 429 or a 503 is due to; undefined for all other errors. */
  get refusalReason(): RefusalReason | undefined {
    const { status } = this;
    return status === 429 || status === 503 ? (this.#reason ?? 'other') : undefined;
  }

  get status(): number {
    return errorTable[this.code].status;
  }

  /** The body of an OpenAI error response: `{"error": {message, type, param, code}}`. */
  toWire(): { error: { message: string; type: string; param: string | null; code: string } } {
    return {
      error: {
        message: this.message,
        type: errorTable[this.code].type,
        param: this.param,
        code: this.vendorCode ?? this.code,
      },
    };
  }

  /** The response headers. OpenAI's clients obey `x-should-retry` before their own rules. */
  headers(): Record<string, string> {
    const headers: Record<string, string> = { ...this.#headers };
    if (this.retryAfterMs !== undefined) {
      const ms = spread(this.retryAfterMs);
      headers['retry-after'] = String(Math.max(1, Math.ceil(ms / 1000)));
      headers['retry-after-ms'] = String(ms);
    }
    if (this.status >= 429 && !this.isRetryable) headers['x-should-retry'] = 'false';
    return headers;
  }

  /** The data of an `error` frame; `fromData` is its inverse. */
  toData(): ErrorData {
    return {
      code: this.code,
      message: this.message,
      ...(this.param === null ? {} : { param: this.param }),
      ...(this.vendorCode === null ? {} : { vendorCode: this.vendorCode }),
      ...(this.details === undefined ? {} : { details: this.details }),
      ...(this.retryAfterMs === undefined ? {} : { retryAfterMs: this.retryAfterMs }),
      ...(this.isRetryable === errorTable[this.code].retryable ? {} : { retryable: this.isRetryable }),
      ...(this.#reason === undefined ? {} : { reason: this.#reason }),
    };
  }

  static fromData(data: ErrorData): ApiError {
    const code = Object.hasOwn(errorTable, data.code) ? data.code : 'server_error';
    // A worker's errors have no reason: they are its vendor's. Another version may know further ones.
    const reason = refusalReasons.find((name) => name === (data.reason ?? 'vendor'));
    return new ApiError(code, data.message, { ...data, reason });
  }

  /**
   * Converts any thrown value to an ApiError. Errors not meant for callers become a bare 500 with the value as cause; temporary
   * refusals by Redis or the blob storage, and a database that is away, become a 503, as the same request may succeed later.
   */
  static from(thrown: unknown): ApiError {
    if (thrown instanceof ApiError) return thrown;
    const away = (message: string, reason: RefusalReason): ApiError =>
      new ApiError('service_unavailable', message, { reason, retryAfterMs: 2000, cause: thrown });
    const tryAgain = 'The service cannot do this for now. Send the request again.';
    if (isRefusal(thrown)) return away(tryAgain, 'queue_unavailable');
    if (thrown instanceof BlobStorageError) return away(tryAgain, 'disk');
    if (isDatabaseUnreachable(thrown)) return away('The database is unavailable for now. Try again later.', 'database');
    return new ApiError('server_error', 'The server had an error while processing your request.', { cause: thrown });
  }
}
