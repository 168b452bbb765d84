import { z } from 'zod';
import { type ApiError, errorTable } from '../../shared/errors.ts';
import { errorDetails, readErrorDetails } from '../../shared/jobs/settlement/error-details.ts';
import { refusedKeys } from '../../shared/redis/keys.ts';
import type { RedisClient } from '../../shared/redis/redis.ts';
import { loadScript } from '../../shared/redis/script.ts';
import type { Logger } from '../../shared/runtime/log.ts';
import { withTimeout } from '../../shared/runtime/with-timeout.ts';
import type { Caller } from '../auth/caller.ts';
import { loggedPath } from '../http/request-report.ts';
import type { Session } from '../management/sign-in/session.ts';
import type { Context } from '../state.ts';

const keep = loadScript<number>(new URL('./keep-refused.lua', import.meta.url));

/** Lifetime and maximum number of stored requests. */
export interface RefusedBounds {
  readonly keptMs: number;
  readonly maxOfAccount: number;
  readonly maxInAll: number;
}

const usualBounds: RefusedBounds = { keptMs: 7 * 86_400_000, maxOfAccount: 200, maxInAll: 20_000 };

/** Interval between writes, and maximum of each write: of one account, and in all. Requests beyond these are not stored. */
const intervalMs = 1000;
const maxOfAccountAtOnce = 10;
const maxAtOnce = 200;
const maxPathCharacters = 200;
const closeMs = 2000;

const refusedRequest = z.object({
  /** Ms since 1970. */
  at: z.int(),
  /** Undefined if the caller is unknown. */
  account: z.string().optional(),
  /** Id of the API key. Undefined for a session or an unknown caller. */
  key: z.string().optional(),
  method: z.string(),
  path: z.string(),
  status: z.int(),
  type: z.string(),
  code: z.string(),
  /** The reason, without keys and without content of the request. */
  message: z.string(),
  param: z.string().optional(),
});

/** The stored data of a request that was refused before it made a job. */
export type RefusedRequest = Readonly<z.infer<typeof refusedRequest>>;

interface PendingRow {
  readonly id: string;
  readonly account: string;
  readonly row: RefusedRequest;
}

/**
 * Stores refused requests, to be looked up by id. Only refusals have a cost. They are written once a second, with a maximum
 * for each account, so that a flood takes neither memory nor the room of other accounts. What Redis refuses is not stored.
 */
export class RefusedRequests {
  readonly #redis: RedisClient;
  readonly #log: Logger;
  readonly #bounds: RefusedBounds;
  #pending: PendingRow[] = [];
  /** Pending requests of each account. */
  #counts = new Map<string, number>();
  #timer: NodeJS.Timeout | undefined;
  #writing: Promise<void> | undefined;
  #isClosed = false;

  constructor(redis: RedisClient, log: Logger, bounds = usualBounds) {
    this.#redis = redis;
    this.#log = log;
    this.#bounds = bounds;
  }

  /** Notes a request that was refused with an error. A request that has made a job is not stored: its job is. */
  note(ctx: Context, error: ApiError): void {
    const id = ctx.state.headers['x-request-id'];
    if (this.#isClosed || this.#pending.length >= maxAtOnce || !id?.startsWith('req_')) return;
    // Both are missing on routes without a guard.
    const { caller, session } = ctx.state as { caller?: Caller; session?: Session };
    const known = caller?.account ?? session?.account;
    // Of unknown callers, only API requests are stored: opening the console is refused until the sign-in.
    if (known === undefined && !ctx.path.startsWith('/v1/')) return;
    const account = known ?? '';
    const count = this.#counts.get(account) ?? 0;
    if (count >= maxOfAccountAtOnce) return;
    this.#counts.set(account, count + 1);
    this.#pending.push({ id: id.slice('req_'.length), account, row: rowOf(ctx, error, known, caller?.apiKeyId) });
    this.#arm();
  }

  /** Returns a stored request by its id without the prefix, or undefined if there is none or it has expired. */
  async find(id: string): Promise<RefusedRequest | undefined> {
    const text = await this.#redis.hget(refusedKeys.rows, id);
    if (text === null) return undefined;
    const { success, data } = refusedRequest.safeParse(JSON.parse(text));
    return success && data.at > Date.now() - this.#bounds.keptMs ? data : undefined;
  }

  /** Writes pending requests. */
  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    // An unavailable Redis must not delay the shutdown.
    await withTimeout(
      Promise.resolve(this.#writing).then(() => this.#write()),
      closeMs,
    );
  }

  #arm(): void {
    if (this.#timer !== undefined || this.#writing !== undefined) return;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#writing = this.#write().finally(() => {
        this.#writing = undefined;
        if (this.#pending.length > 0 && !this.#isClosed) this.#arm();
      });
    }, intervalMs);
    this.#timer.unref();
  }

  async #write(): Promise<void> {
    const rows = this.#pending;
    this.#pending = [];
    this.#counts = new Map();
    if (rows.length === 0) return;
    const { rows: kept, all, accounts } = refusedKeys;
    const { keptMs, maxOfAccount, maxInAll } = this.#bounds;
    const texts = rows.flatMap(({ id, account, row }) => [id, account, JSON.stringify(row)]);
    try {
      await keep(this.#redis, [kept, all, accounts], [keptMs, maxOfAccount, maxInAll, ...texts]);
    } catch (error) {
      this.#log.debug({ err: error }, 'storing refused requests failed');
    }
  }
}

function rowOf(
  { method, path }: Context,
  error: ApiError,
  account: string | undefined,
  key: string | undefined,
): RefusedRequest {
  const { message = '', param } = readErrorDetails(errorDetails(error)) ?? {};
  return {
    at: Date.now(),
    ...(account !== undefined && { account }),
    ...(key !== undefined && { key }),
    method,
    path: loggedPath(path).slice(0, maxPathCharacters),
    status: error.status,
    type: errorTable[error.code].type,
    code: error.vendorCode ?? error.code,
    message,
    ...(param !== undefined && { param }),
  };
}
