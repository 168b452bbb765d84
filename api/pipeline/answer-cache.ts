import { cachePrefix } from '../../shared/jobs/settlement/settle.ts';
import { type Preferences, sha256 } from '../admission/preferences.ts';
import type { Context } from '../state.ts';
import type { Endpoint } from './endpoint.ts';
import type { ParsedRequest } from './parsed-request.ts';
import { textOf } from './request-text.ts';

/** Longer requests (in characters) are not cached: each is parsed and written once more, on the event loop. */
const maxCachedRequest = 262_144;

/**
 * The name under which a request's answer is cached, in the place of an idempotency key; undefined if it is not to be cached.
 * It depends on account, endpoint, model and the whole body but for whether the answer is
 * streamed: fields in another order make no difference, and neither does anything that only the reply depends on.
 */
export function cacheName(
  { state }: { readonly state: Pick<Context['state'], 'caller'> },
  { name, capability }: Pick<Endpoint, 'name' | 'capability'>,
  { model, request, store, background }: ParsedRequest,
  { cacheMs, idempotencyKey, respondAsync }: Preferences,
): string | undefined {
  if (cacheMs === undefined || idempotencyKey !== undefined || respondAsync) return undefined;
  // Responses are resources: each has its own id, which its caller may continue and delete.
  if ((capability !== 'chat' && capability !== 'embedding') || store !== undefined || background) return undefined;
  if (request.length > maxCachedRequest) return undefined;
  const { stream_options: _, ...body } = JSON.parse(textOf(request)) as Record<string, unknown>;
  // A key that leaves out unsupported fields may get another answer than one for which they are an error.
  const { account, unsupportedParameters = '' } = state.caller;
  // As JSON: one may end where another begins, and the hash does not tell lone surrogates apart.
  const about = JSON.stringify([account, name, model, unsupportedParameters]);
  return cachePrefix + sha256(about + canonicalJson(body));
}

/** Reports whether a request that asked for a cached answer got one; `bypass`: its answer is not one that is cached. */
export function showCache({ res, state }: Context, result: 'hit' | 'miss' | 'bypass'): void {
  state.facts.cache = result;
  if (!res.headersSent) res.setHeader('x-sluice-cache', result);
}

/** JSON text whose objects have their fields in order. */
function canonicalJson(value: unknown): string {
  return JSON.stringify(value, (_, each: unknown) =>
    typeof each === 'object' && each !== null && !Array.isArray(each)
      ? Object.fromEntries(Object.entries(each).sort(([one], [other]) => (one < other ? -1 : 1)))
      : each,
  );
}
