import type { Middleware } from 'koa';
import { ApiError } from '../../shared/errors.ts';
import { FairTurns } from '../../shared/fairness/fair-turns.ts';
import type { Context, State } from '../state.ts';

/** Waiting reads of all accounts together. A page of the console asks for about ten at once. */
const usualLimits = { waiting: 100, patienceMs: 4000 };
/** Reads of a process at once: SQLite answers one after another, a pool of Postgres also has to serve everything else. */
const atOnce = { sqlite: 1, postgres: 3 };

/**
 * Shares the database between accounts that read reports, lists and balances, which cost their callers nothing: few of them run at once,
 * the next one is of the account that has used the least time, and what has waited too long never runs. Otherwise one account's
 * flood would be ahead of everybody's sign-ins, keys and records for as long as its reads take.
 */
export class FairReads {
  readonly #turns: FairTurns;
  readonly #patienceMs: number;

  constructor({ databaseUrl }: { readonly databaseUrl?: string | undefined }, limits = usualLimits) {
    const number = databaseUrl === undefined ? atOnce.sqlite : atOnce.postgres;
    const { waiting: tasks, patienceMs } = limits;
    this.#turns = new FairTurns(number, { tasks, bytes: Number.POSITIVE_INFINITY }, { tooMany, tooLate });
    this.#patienceMs = patienceMs;
  }

  /**
   * Runs `read` when it is the account's time.
   * @throws ApiError 429 if the account has too many waiting, 503 if it has waited for too long; whatever `read` throws
   */
  read<Row>(account: string, read: () => Promise<Row>): Promise<Row> {
    return this.#turns.run({ account, bytes: 0 }, AbortSignal.timeout(this.#patienceMs), read);
  }
}

/** The account that asks: an operator's own, whose ever data is read. */
export function askingAccount({ state }: Context): string {
  return (state.session as State['session'] | undefined)?.account ?? state.caller.account;
}

/** Runs a route that answers with what it has read, after its caller is known. A route that sends while it reads uses `read`. */
export function readFairly({ fairReads }: { readonly fairReads: FairReads }): Middleware<State> {
  return (ctx, next) => fairReads.read(askingAccount(ctx), next);
}

function tooMany(): ApiError {
  return new ApiError('rate_limit_exceeded', 'This account asks for too many reports and lists at a time.', {
    reason: 'database',
    retryAfterMs: 2000,
  });
}

function tooLate(): ApiError {
  return new ApiError('service_unavailable', 'Reports and lists cannot be read for now. Try again later.', {
    reason: 'database',
    retryAfterMs: 2000,
  });
}
