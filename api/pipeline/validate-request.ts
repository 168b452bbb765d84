import { type Catalogue, type RoutedModel, routeName } from '../../shared/catalogue/catalogue.ts';
import type { Model } from '../../shared/catalogue/models.ts';
import { ApiError } from '../../shared/errors.ts';
import { pricesAt, tierName } from '../../shared/money/service-tier.ts';
import type { Dialect } from '../../shared/vendors/vendors.ts';
import type { CallerDirectory } from '../auth/authenticate.ts';
import { assertInScope, assertOneModel, type Caller } from '../auth/caller.ts';
import { readMs } from '../bounds/bounded-reads.ts';
import { serverName } from '../http/request-report.ts';
import { ClientConnection, type Handover } from '../replies/client-connection.ts';
import type { Context, State } from '../state.ts';
import type { Endpoint, ResolveContext, ResolveDependencies } from './endpoint.ts';
import { missingModel, shownId } from './missing.ts';
import type { ParsedRequest } from './parsed-request.ts';
import { pathsOf } from './paths-of-model.ts';
import { invalidParameter } from './request-fields.ts';
import { assertVendorIds, type BilledExtra, tierPrefix } from './vendor-facts.ts';

/** Dependencies of a request's validation. */
export interface ValidateRequestDependencies extends ResolveDependencies {
  readonly callers: CallerDirectory;
  readonly handover: Handover;
}

/**
 * Resolves a parsed request's references (its model, other jobs), and validates it against its model and the caller's key.
 * The header `X-Sluice-Ignored` names ignored fields.
 * @param share of what is read for its references; undefined only if its endpoint has none
 * @throws ApiError 400, 401, 403, 404; 429 if that is too much.
 */
export async function validateRequest(
  ctx: Context,
  services: ValidateRequestDependencies,
  endpoint: Endpoint,
  read: ParsedRequest,
  share: ResolveContext['share'] | undefined,
): Promise<ParsedRequest> {
  const named = withModel(services, endpoint, read);
  const parsed = endpoint.resolve && share ? await resolve(ctx, services, endpoint.resolve, named, share) : named;
  const checked = await checkByNewestKey(services, endpoint, parsed, ctx.state);
  const ignored = ignoredByAll(checked);
  if (ignored === undefined) ctx.state.ignored = checked.ignored;
  else if (ignored !== '') ctx.set('x-sluice-ignored', ignored);
  return withCheck(parsed, checked);
}

/**
 * The request with what its check has found. Its limit of output tokens becomes the most that one of its routes answers, which
 * is all that it can use: a message may come with a higher one (see `execute-message.ts`).
 */
export function withCheck<Parsed extends ParsedRequest>(
  parsed: Parsed,
  { excludedRoutes, unpriced, maxOutputTokens }: CheckedRequest,
): Parsed {
  const { extent } = parsed;
  const isLowered = extent?.outputTokens !== undefined && extent.outputTokens > maxOutputTokens;
  if (excludedRoutes.length === 0 && unpriced === undefined && !isLowered) return parsed;
  return {
    ...parsed,
    excludedRoutes,
    unpriced,
    ...(isLowered && { extent: { ...extent, outputTokens: maxOutputTokens } }),
  };
}

/** The request with the model that is meant where it names none. @throws ApiError 400 where the operator has set none. */
function withModel(
  { config }: ValidateRequestDependencies,
  { defaultModel }: Endpoint,
  read: ParsedRequest,
): ParsedRequest {
  if (defaultModel === undefined || read.model !== '') return read;
  const model = config.defaultModels[defaultModel];
  if (model !== undefined) return { ...read, model };
  const hint = `name one, or have the operator of this gateway set one by SLUICE_DEFAULT_MODELS (${defaultModel}=MODEL)`;
  throw invalidParameter('model', `Missing required parameter: 'model'. There is no default model here: ${hint}.`);
}

async function resolve(
  ctx: Context,
  services: ValidateRequestDependencies,
  resolveRequest: NonNullable<Endpoint['resolve']>,
  read: ParsedRequest,
  share: ResolveContext['share'],
): Promise<ParsedRequest> {
  const connection = new ClientConnection(ctx.res, services.handover);
  try {
    const { account } = ctx.state.caller;
    return await resolveRequest(read, {
      services,
      account,
      params: ctx.params as Record<string, string>,
      connection,
      share,
      assertActive: async () => {
        ctx.state.caller = await connection.wait(services.callers.assertActive(ctx.state.caller), readMs);
      },
    });
  } finally {
    connection.close();
  }
}

/** The result of checking a request against the routes of its model. */
interface CheckedRequest {
  /** Names of the routes that would refuse it. */
  readonly excludedRoutes: readonly string[];
  /** Names of ignored fields, for the header, by server (see `serverName`). */
  readonly ignored: ReadonlyMap<string, string>;
  /** The first extra that one of the other routes would request from its vendor, which may bill it. */
  readonly unpriced: BilledExtra | undefined;
  /** Output tokens of the longest answer that one of these routes gives; Infinity if one of them states no maximum. */
  readonly maxOutputTokens: number;
}

/**
 * Checks a request against every route of its model; routes that would refuse it are excluded.
 * @throws ApiError 404 for an unknown model, 403 for one that the caller's key may not use, or an id of the operator's own
 * account at a vendor, 400 for a model that this endpoint cannot use, or the first route's error if every route refuses.
 */
export function checkRequest(
  { catalogue }: { readonly catalogue: Catalogue },
  endpoint: Endpoint,
  parsed: ParsedRequest,
  caller: Pick<Caller, 'unsupportedParameters' | 'capabilities' | 'models'> & Partial<Pick<Caller, 'vendorIds'>>,
): CheckedRequest {
  const model = findModel(catalogue, endpoint, parsed.model, caller);
  assertOneModel(caller, parsed.extras);
  const excludedRoutes: string[] = [];
  const ignored = new Map<string, string>();
  let refusal: unknown;
  let unpriced: BilledExtra | undefined;
  let maxOutputTokens = 0;
  for (const routed of catalogue.routes(model.id, endpoint.capability)) {
    try {
      const names = endpoint.check?.(parsed, routed, caller.unsupportedParameters) ?? [];
      const standIn = routed.id === model.id ? undefined : routed.id;
      const words = names.length === 0 ? '' : [...new Set(names.map(headerWord))].join(', ');
      ignored.set(serverName(routed.route.vendor, standIn), words);
      unpriced ??= findUnpriced(catalogue, parsed, routed, names);
      maxOutputTokens = Math.max(maxOutputTokens, routed.maxOutputTokens ?? Number.POSITIVE_INFINITY);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      refusal ??= error;
      excludedRoutes.push(routeName(routed.route));
    }
  }
  if (ignored.size === 0 && refusal !== undefined) throw refusal;
  assertVendorIds(caller, parsed.vendorIds);
  return { excludedRoutes, ignored, unpriced, maxOutputTokens };
}

/** The first extra of a request that a route would request from its vendor. @param ignored fields omitted for it */
function findUnpriced(
  catalogue: Catalogue,
  { extras }: ParsedRequest,
  routed: RoutedModel,
  ignored: readonly string[],
): BilledExtra | undefined {
  if (extras === undefined) return undefined;
  const { vendor } = routed.route;
  const { vendors } = catalogue.sources();
  const free = Object.hasOwn(vendors, vendor) ? (vendors[vendor]?.unbilled ?? []) : [];
  return extras.find(
    (extra) =>
      !ignored.includes(extra.name) &&
      !ignored.includes(extra.param) &&
      !free.includes(extra.name) &&
      !hasPrice(routed, extra),
  );
}

/** Dialects of vendors that count what is written to their caches by its lifetimes: for an hour it costs twice the price of input. */
const tellsLifetimes: ReadonlySet<Dialect> = new Set(['anthropic', 'bedrock']);

function hasPrice({ prices, vendorRow }: RoutedModel, { coveredBy: covering, name }: BilledExtra): boolean {
  if (covering === 'hour_cache') return tellsLifetimes.has(vendorRow.dialect) && prices?.input !== undefined;
  if (covering === 'hd') return prices?.imageKinds?.hd !== undefined;
  if (covering === 'tier') return pricesAt(prices, tierName(name.slice(tierPrefix.length)) ?? '') !== undefined;
  // A flat price per request does not state the price of a search context.
  return covering === 'search' && typeof prices?.request === 'object';
}

/**
 * The same for a running request. The cached key may be stale, so a refusal only counts with the key's current settings,
 * which `state.caller` then has.
 * @throws ApiError as `checkRequest`, 401 if the key is no longer valid.
 */
export async function checkByNewestKey(
  services: { readonly catalogue: Catalogue; readonly callers: CallerDirectory },
  endpoint: Endpoint,
  parsed: ParsedRequest,
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

/** The ignored fields if they are the same for all vendors, else undefined. */
export function ignoredByAll({ ignored }: CheckedRequest): string | undefined {
  const different = new Set(ignored.values());
  return different.size === 1 ? different.values().next().value : undefined;
}

/**
 * Finds the model's row.
 * @throws ApiError 404 for an unknown model, 403 for one outside of the key's scope, 400 for one unusable here.
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
