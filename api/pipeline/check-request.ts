import type { Catalogue, RoutedModel } from '../../shared/catalogue/catalogue.ts';
import type { Model } from '../../shared/catalogue/models.ts';
import { routeName } from '../../shared/catalogue/route-name.ts';
import { ApiError } from '../../shared/errors.ts';
import type { CallerDirectory } from '../auth/authenticate.ts';
import type { Caller } from '../auth/caller.ts';
import { assertInScope } from '../auth/key-scopes.ts';
import type { State } from '../state.ts';
import type { BilledExtra } from './billed-extras.ts';
import type { Endpoint, Parsed } from './endpoint.ts';
import { invalidParameter } from './invalid-request.ts';
import { missingModel, shownId } from './missing.ts';
import { pathsOf } from './paths-of-model.ts';
import { serverName } from './show-served.ts';
import { assertVendorIds } from './vendor-ids.ts';

/** What the routes of a request's model make of it. */
export interface CheckedRequest {
  /** Names of the routes that would refuse it. */
  readonly excludedRoutes: readonly string[];
  /** Names of the fields that are left out, for the header, by who may serve it (see `serverName`). */
  readonly ignored: ReadonlyMap<string, string>;
  /** The first extra that one of the other routes would ask its vendor for, which may bill it. */
  readonly unpriced: BilledExtra | undefined;
}

/**
 * Holds a request against every route of its model: one that would refuse it is left out.
 * @throws ApiError 404 for an unknown model, 403 for one that the caller's key may not use, or an id of the operator's own
 * account at a vendor, 400 for a model that this endpoint cannot use, or what the first route says where every route refuses.
 */
export function checkRequest(
  { catalogue }: { readonly catalogue: Catalogue },
  endpoint: Endpoint,
  parsed: Parsed,
  caller: Pick<Caller, 'unsupportedParameters' | 'capabilities' | 'models'> & Partial<Pick<Caller, 'vendorIds'>>,
): CheckedRequest {
  const model = findModel(catalogue, endpoint, parsed.model, caller);
  const excludedRoutes: string[] = [];
  const ignored = new Map<string, string>();
  let refusal: unknown;
  let unpriced: BilledExtra | undefined;
  for (const routed of catalogue.routes(model.id, endpoint.capability)) {
    try {
      const names = endpoint.check?.(parsed, routed, caller.unsupportedParameters) ?? [];
      const standIn = routed.id === model.id ? undefined : routed.id;
      const words = names.length === 0 ? '' : [...new Set(names.map(headerWord))].join(', ');
      ignored.set(serverName(routed.route.vendor, standIn), words);
      unpriced ??= findUnpriced(catalogue, parsed, routed, names);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      refusal ??= error;
      excludedRoutes.push(routeName(routed.route));
    }
  }
  if (ignored.size === 0 && refusal !== undefined) throw refusal;
  assertVendorIds(caller, parsed.vendorIds);
  return { excludedRoutes, ignored, unpriced };
}

/** The first extra of a request that a route would ask its vendor for. @param ignored what is left out for it */
function findUnpriced(
  catalogue: Catalogue,
  { extras }: Parsed,
  { route: { vendor }, prices }: RoutedModel,
  ignored: readonly string[],
): BilledExtra | undefined {
  if (extras === undefined) return undefined;
  const { vendors } = catalogue.sources();
  const free = Object.hasOwn(vendors, vendor) ? (vendors[vendor]?.unbilled ?? []) : [];
  return extras.find(
    ({ name, param, coveredBy }) =>
      !ignored.includes(name) && !ignored.includes(param) && !free.includes(name) && !hasPrice(prices, coveredBy),
  );
}

function hasPrice(prices: RoutedModel['prices'], covering: BilledExtra['coveredBy']): boolean {
  if (covering === 'hd') return prices?.imageKinds?.hd !== undefined;
  // Where all requests cost the same, nobody has said what the search context costs.
  return covering === 'search' && typeof prices?.request === 'object';
}

/**
 * The same for a request under way. What is remembered of its key may be old: it is refused by the key's newest settings
 * only, and `state.caller` has them then.
 * @throws ApiError as `checkRequest`, 401 where the key is not valid any more.
 */
export async function checkByNewestKey(
  services: { readonly catalogue: Catalogue; readonly callers: CallerDirectory },
  endpoint: Endpoint,
  parsed: Parsed,
  state: Pick<State, 'caller'>,
): Promise<CheckedRequest> {
  const { caller } = state;
  try {
    return checkRequest(services, endpoint, parsed, caller);
  } catch (error) {
    state.caller = await services.callers.assertActive(caller);
    if (state.caller === caller) throw error;
    return checkRequest(services, endpoint, parsed, state.caller);
  }
}

/** Names of fields may be the caller's text; in a header stands only what cannot end it. */
function headerWord(name: string): string {
  return /^[\w.-]{1,80}$/.test(name) ? name : 'unknown';
}

/** The ignored fields where they are the same whichever vendor serves; undefined where it depends. */
export function ignoredByAll({ ignored }: CheckedRequest): string | undefined {
  const different = new Set(ignored.values());
  return different.size === 1 ? different.values().next().value : undefined;
}

/**
 * The model's row.
 * @throws ApiError 404 for an unknown model, 403 for one outside of the key's scope, 400 for one that this endpoint cannot use.
 */
function findModel(
  catalogue: Catalogue,
  endpoint: Endpoint,
  id: string,
  scopes: Pick<Caller, 'capabilities' | 'models'>,
): Model {
  const model = catalogue.find(id, endpoint.capability);
  if (model === undefined) throw missingModel(catalogue, id, scopes, endpoint.capability);
  assertInScope(scopes, { id, capability: endpoint.capability });
  if (model.capability !== endpoint.capability) {
    const message = `The model \`${shownId(id)}\` cannot be used with ${endpoint.path}: use ${pathsOf(model).join(' or ')}.`;
    throw invalidParameter('model', message);
  }
  return model;
}
