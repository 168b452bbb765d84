import { createHmac } from 'node:crypto';
import { ApiError } from '../../../shared/errors.ts';
import { FairTurns } from '../../../shared/fairness/fair-turns.ts';
import { withTimeout } from '../../../shared/runtime/with-timeout.ts';
import { isSame } from './known-devices.ts';

/** Look-ups at a time: each is short, and most of it is spent in waiting for the event loop. */
const atATime = 8;
/** How many look-ups of all sessions wait, and how long (ms). A page of the console asks for about ten at once. */
const waiting = { tasks: 100, bytes: Number.POSITIVE_INFINITY };
const turnMs = 2000;
/** How long one may take with its wait. A late one keeps its place until it ends: a database that hangs has no more of them. */
const lookUpMs = 4000;

/**
 * Shares the look-ups of sessions between them: each request of the console has one, before anything else is known of it. Otherwise
 * those of one session, at a thousand connections, would be ahead of everybody's, and all would be too late.
 */
export class SessionTurns {
  readonly #turns: FairTurns;
  readonly #secret: () => Buffer;

  /** @param secret returns the secret that signs sessions' cookies. @throws ApiError 503 while it is not known */
  constructor(secret: () => Buffer) {
    this.#turns = new FairTurns(atATime, waiting, { tooMany, tooLate: unavailable });
    this.#secret = secret;
  }

  /**
   * Looks a session up when it is its turn.
   * @param cookies of the request
   * @throws ApiError 429 if too much of the session waits, 503 if it fails or takes too long
   */
  async run<Found>(cookies: string, lookUp: () => Promise<Found>): Promise<Found> {
    const turn = { account: this.#tokenIn(cookies), bytes: 0 };
    const looking = this.#turns.run(turn, AbortSignal.timeout(turnMs), lookUp).then(
      (found) => ({ found }),
      (error) => ({ error: error instanceof ApiError ? error : unavailable(error) }),
    );
    const looked = await withTimeout(looking, lookUpMs);
    if (looked === undefined) throw unavailable();
    if ('error' in looked) throw looked.error;
    return looked.found;
  }

  /** The token of the session that a request names; empty for all whose signature is wrong, or they would have a turn each. */
  #tokenIn(cookies: string): string {
    const [, value = ''] = /(?:^|[;\s])(?:__Secure-)?sluice\.session_token=([^;\s]*)/.exec(cookies) ?? [];
    const [token = '', signature = ''] = unescaped(value).split('.', 2);
    // As better-auth signs it (https://www.better-auth.com/docs/concepts/cookies).
    const key = this.#secret().toString('hex');
    return isSame(signature, createHmac('sha256', key).update(token).digest('base64')) ? token : '';
  }
}

function unescaped(value: string): string {
  try {
    return decodeURIComponent(value);
  } catch {
    return '';
  }
}

function tooMany(): ApiError {
  return new ApiError('rate_limit_exceeded', 'This session asks for too much at a time. Try again later.', {
    reason: 'database',
    retryAfterMs: 1000,
  });
}

function unavailable(cause?: unknown): ApiError {
  return new ApiError('service_unavailable', 'Sessions cannot be checked for now. Try again later.', {
    reason: 'database',
    retryAfterMs: 2000,
    cause,
  });
}
