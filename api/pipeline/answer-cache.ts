import { cachePrefix } from '../../shared/jobs/settlement/settle.ts';
import type { Preferences } from '../admission/preferences.ts';
import type { Context } from '../state.ts';
import type { Endpoint } from './endpoint.ts';
import type { ParsedRequest } from './parsed-request.ts';
import { requestName } from './request-name.ts';

/**
 * The name under which the answer of a request that asks for it is cached, in the place of an idempotency key; undefined if it is
 * not one that is cached. See `requestName`.
 */
export function cacheName(
  ctx: { readonly state: Pick<Context['state'], 'caller'> },
  endpoint: Pick<Endpoint, 'name' | 'capability'>,
  parsed: ParsedRequest,
  { idempotencyKey, respondAsync }: Pick<Preferences, 'idempotencyKey' | 'respondAsync'>,
): string | undefined {
  if (idempotencyKey !== undefined || respondAsync) return undefined;
  const name = requestName(ctx, endpoint, parsed);
  return name && cachePrefix + name;
}

/** Reports whether a request that asked for a cached answer got one; `bypass`: its answer is not one that is cached. */
export function showCache({ state }: Context, result: 'hit' | 'miss' | 'bypass'): void {
  state.facts.cache = result;
  state.headers['x-sluice-cache'] = result;
}
