import type { RedisClient } from '../../shared/redis.ts';
import type { Caller } from '../middleware/authenticate.ts';
import type { AdmitReply } from './admit.ts';

/** Share of its concurrency up to which a key's next request is expected to be admitted. */
const roomy = 0.5;
/** How many keys are remembered. */
const mostKeys = 10_000;

/**
 * Whose next request is as good as admitted: those whose last one was, with room to spare, over the connection that is
 * still open. A guess only: admission itself decides. (After a reconnect Redis may not know the scripts any more, and
 * loading one again would let what was sent behind it pass.)
 */
export class AdmissionForecast {
  readonly #roomyKeys = new Set<string>();
  /** Keys of limited accounts, and such with a budget: what their jobs may cost is asked for. */
  readonly #payingKeys = new Set<string>();

  constructor(redis: RedisClient) {
    redis.on('close', () => this.#roomyKeys.clear());
  }

  note(caller: Caller, reply: AdmitReply, concurrency: number): void {
    const isRoomy = reply.verdict === 'admitted' && reply.turn === 0 && reply.running <= concurrency * roomy;
    if (isRoomy) remember(this.#roomyKeys, caller.apiKeyId);
    else this.#roomyKeys.delete(caller.apiKeyId);
  }

  /** Notes that what a caller's jobs may cost was asked for. */
  noteCosts({ apiKeyId }: Caller): void {
    remember(this.#payingKeys, apiKeyId);
  }

  /** Whether admission is going to ask what a job may cost. */
  costs({ apiKeyId, budget }: Caller): boolean {
    return budget !== undefined || this.#payingKeys.has(apiKeyId);
  }

  admits(caller: Caller): boolean {
    return this.#roomyKeys.has(caller.apiKeyId);
  }
}

/** Keys come and go: the few that are in use are noted again. */
function remember(keys: Set<string>, id: string): void {
  if (keys.size >= mostKeys && !keys.has(id)) keys.clear();
  keys.add(id);
}
