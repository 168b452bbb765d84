import { z } from 'zod';
import { type ApiError, errorTable } from '../../shared/errors.ts';
import { errorDetails, readErrorDetails } from '../../shared/jobs/settlement/error-details.ts';
import { refusedKeys } from '../../shared/redis/keys.ts';
import type { RedisClient } from '../../shared/redis/redis.ts';
import { loadScript } from '../../shared/redis/script.ts';
import { type Logger, withoutIds } from '../../shared/runtime/log.ts';
import { withTimeout } from '../../shared/runtime/with-timeout.ts';
import type { Caller } from '../auth/caller.ts';
import type { Session } from '../management/sign-in/session.ts';
import type { Context } from '../state.ts';

const keep = loadScript<number>(new URL('./keep-refused.lua', import.meta.url));

/** How long refused requests can be looked up, and how many of them. */
export interface RefusedBounds {
  readonly keptMs: number;
  readonly maxOfAccount: number;
  readonly maxInAll: number;
}

const usualBounds: RefusedBounds = { keptMs: 7 * 86_400_000, maxOfAccount: 200, maxInAll: 20_000 };

/** How often they are written, and how many each time at most: of one account, and in all. What is more is not kept. */
const intervalMs = 1000;
const maxOfAccountAtOnce = 10;
const maxAtOnce = 200;
const maxPathCharacters = 200;
const closeMs = 2000;

const refusedRequest = z.object({
  /** Ms since 1970. */
  at: z.int(),
  /** Undefined: nobody knew who asked. */
  account: z.string().optional(),
  /** Id of the API key; undefined: a session asked, or nobody knew. */
  key: z.string().optional(),
  method: z.string(),
  path: z.string(),
  status: z.int(),
  type: z.string(),
  code: z.string(),
  /** Why, without keys and without what the request said. */
  message: z.string(),
  param: z.string().optional(),
});

/** What is kept of a request that was refused before it made a job. */
export type RefusedRequest = Readonly<z.infer<typeof refusedRequest>>;

interface PendingRow {
  readonly id: string;
  readonly account: string;
  readonly row: RefusedRequest;
}

/**
 * Requests that were refused, to be looked up by their ids. Only refusals cost anything: they are written once a second,
 * so many of an account at most, so that a flood of them takes neither memory nor other accounts' room. Redis has them, and
 * what it refuses is not kept.
 */
export class RefusedRequests {
  readonly #redis: RedisClient;
  readonly #log: Logger;
  readonly #bounds: RefusedBounds;
  #pending: PendingRow[] = [];
  /** How many of each account are pending. */
  #counts = new Map<string, number>();
  #timer: NodeJS.Timeout | undefined;
  #writing: Promise<void> | undefined;
  #isClosed = false;

  constructor(redis: RedisClient, log: Logger, bounds = usualBounds) {
    this.#redis = redis;
    this.#log = log;
    this.#bounds = bounds;
  }

  /** A request is refused with an error. One that has made a job is not kept: its job is. */
  note(ctx: Context, error: ApiError): void {
    const id = ctx.res.getHeader('x-request-id');
    if (this.#isClosed || this.#pending.length >= maxAtOnce || typeof id !== 'string' || !id.startsWith('req_')) return;
    // Behind no guard there is neither.
    const { caller, session } = ctx.state as { caller?: Caller; session?: Session };
    const known = caller?.account ?? session?.account;
    // Of strangers what they ask of the API: whoever opens the console is refused until the sign-in.
    if (known === undefined && !ctx.path.startsWith('/v1/')) return;
    const account = known ?? '';
    const count = this.#counts.get(account) ?? 0;
    if (count >= maxOfAccountAtOnce) return;
    this.#counts.set(account, count + 1);
    this.#pending.push({ id: id.slice('req_'.length), account, row: rowOf(ctx, error, known, caller?.apiKeyId) });
    this.#arm();
  }

  /** What is kept of a request by its id, without its prefix; undefined where nothing is (any more). */
  async find(id: string): Promise<RefusedRequest | undefined> {
    const text = await this.#redis.hget(refusedKeys.rows, id);
    if (text === null) return undefined;
    const { success, data } = refusedRequest.safeParse(JSON.parse(text));
    return success && data.at > Date.now() - this.#bounds.keptMs ? data : undefined;
  }

  /** Writes what is pending. */
  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    // A Redis that is away must not hold up the end.
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
    path: withoutIds(path.slice(0, maxPathCharacters)),
    status: error.status,
    type: errorTable[error.code].type,
    code: error.vendorCode ?? error.code,
    message,
    ...(param !== undefined && { param }),
  };
}
