import { type Capability, capabilities } from '../../capabilities/capability.ts';
import type { Model, ModelRoute } from '../../catalogue/model.ts';
import { usualTraits } from '../../catalogue/passed-through.ts';
import { areUncounted } from '../../money/cost.ts';
import type { ModelEntry, RouteEntry } from './configuration-file.ts';
import { expected, type Mistake } from './mistake.ts';

/** The capability whose models have a trait, by the trait's key in the file. */
const traitOwners: readonly (readonly [key: string, field: keyof ModelEntry & keyof Model, owner: Capability])[] = [
  ['chat', 'chat', 'chat'],
  ['legacy_completions', 'legacyCompletions', 'chat'],
  ['responses', 'responses', 'chat'],
  ['embedding', 'embedding', 'embedding'],
  ['image', 'image', 'image'],
  ['transcription', 'transcription', 'transcription'],
  ['speech', 'speech', 'speech'],
  ['video', 'video', 'video'],
];

/** Default traits for a capability, if neither the catalogue nor the file specifies them. */
const defaultTraits: Partial<Record<keyof Model, unknown>> = {
  ...usualTraits.embedding,
  ...usualTraits.image,
  ...usualTraits.transcription,
  ...usualTraits.speech,
  chat: { hints: true, effort: true },
  video: { input: false, remix: false },
};

/**
 * Changes a row of the catalogue field by field, or creates one.
 * @param mistakes receives unusable entries
 * @returns undefined if the entry is unusable
 */
export function changeModel(
  id: string,
  before: Model | undefined,
  entry: ModelEntry,
  mistakes: Mistake[],
): Model | undefined {
  const at = (...path: Mistake['path']) => ['models', id, ...path];
  const capability = before?.capability ?? entry.capability;
  if (before && entry.capability !== undefined && entry.capability !== before.capability) {
    mistakes.push(expected(at('capability'), `${before.capability}, as the catalogue has it`));
  }
  if (capability === undefined) mistakes.push(expected(at('capability'), `one of ${capabilities.join(', ')}`));
  const routes = entry.routes ?? before?.routes;
  if (routes === undefined) mistakes.push(expected(at('routes'), 'a list of routes'));
  if (capability === undefined || routes === undefined) return undefined;
  const traits = traitsOf(before, entry, capability, (key, message) => mistakes.push({ path: at(key), message }));
  const { fallbacks = before?.fallbacks, ownedBy = before?.ownedBy ?? routes[0]?.vendor ?? '' } = entry;
  const rest = before === undefined ? {} : unchanged(before, entry);
  const own = given(entry, ['input', 'output', 'reasoning', 'deprecatedAt', 'created']);
  const changed = { created: 0, ...rest, ...own, id, ownedBy, capability, ...traits };
  const routed = withRoutes(changed, before, entry);
  checkPrices(routed, entry, mistakes);
  return {
    ...routed,
    ...(fallbacks !== undefined && fallbacks.length > 0 && { fallbacks }),
  };
}

/** The part of a row that an entry keeps. An entry brings a retired model back; its own routes may lead to vendors that go on serving it. */
function unchanged(before: Model, entry: ModelEntry): Partial<Model> {
  const { fallbacks: _fallbacks, retired: _retired, ...rest } = before;
  if (entry.routes === undefined) return rest;
  const { deprecatedAt: _deprecatedAt, replacement: _replacement, ...elsewhere } = rest;
  return elsewhere;
}

/** Speech with a price per second, say, would cost its callers nothing, and be held for next to nothing. */
function checkPrices(model: Model, entry: ModelEntry, mistakes: Mistake[]): void {
  const { id, capability, routes } = model;
  // The prices of the first route are the row's, and in the catalogue nowhere else.
  const pricesOf = (index: number) => (index === 0 ? model : routes[index])?.prices;
  const wrong = routes.find((_, index) => areUncounted(pricesOf(index) ?? {}, capability));
  if (wrong === undefined) return;
  const own = entry.routes?.findIndex(({ vendor, model }) => vendor === wrong.vendor && model === wrong.model) ?? -1;
  const isOwn = entry.routes?.[own]?.prices !== undefined;
  const path = isOwn ? ['models', id, 'routes', own, 'prices'] : ['models', id, 'prices'];
  mistakes.push(expected(path, `a price by which models of the capability ${capability} are counted`));
}

/** The specified traits; mappings are merged field by field. */
function traitsOf(
  before: Model | undefined,
  entry: ModelEntry,
  capability: Capability,
  refuse: (key: string, message: string) => void,
): Partial<Model> {
  const traits: Record<string, unknown> = {};
  for (const [key, field, owner] of traitOwners) {
    const specified = entry[field];
    if (specified !== undefined && owner !== capability)
      refuse(key, `only models of the capability ${owner} have this`);
    else if (typeof specified === 'object')
      traits[field] = { ...(defaultTraits[field] as object), ...(before?.[field] as object), ...specified };
    else if (specified !== undefined) traits[field] = specified;
    // A chat model without traits accepts everything; any other model's endpoint needs them.
    else if (before === undefined && owner === capability && owner !== 'chat') traits[field] = defaultTraits[field];
  }
  const { sizes, seconds } = (traits.video ?? {}) as { sizes?: unknown; seconds?: unknown };
  if (traits.video !== undefined && (sizes === undefined || seconds === undefined)) {
    refuse('video', 'expected a mapping with sizes and seconds');
  }
  return traits;
}

type Facts = Pick<Model, 'contextWindow' | 'maxOutputTokens' | 'prices'>;
const factNames = ['contextWindow', 'maxOutputTokens', 'prices'] as const;

/**
 * The row with its routes. The model's settings in the file apply to every route that does not override them; the row's own
 * facts are those of the first route.
 */
function withRoutes(changed: Omit<Model, 'routes'>, before: Model | undefined, entry: ModelEntry): Model {
  const facts = given(entry, factNames);
  const own = changeFacts(changed, facts);
  if (entry.routes === undefined) {
    const routes = (before?.routes ?? []).map((route, index) =>
      index === 0 ? route : { ...route, ...changeFacts(route, facts) },
    );
    return { ...changed, ...own, routes };
  }
  const routes = entry.routes
    .map((route) => routeOf(route, own))
    .sort((a, b) => (a.order as number) - (b.order as number));
  return { ...changed, ...given(routes[0] as ModelRoute, factNames), routes };
}

function routeOf(entry: RouteEntry, model: Facts): ModelRoute {
  const { vendor, model: name, order = 0, firstByteSeconds, idleSeconds } = entry;
  return {
    vendor,
    model: name,
    ...changeFacts(model, given(entry, factNames)),
    ...given(entry, ['weight', 'region']),
    order,
    ...(firstByteSeconds !== undefined && { firstByteMs: firstByteSeconds }),
    ...(idleSeconds !== undefined && { idleMs: idleSeconds }),
  };
}

/**
 * Prices are merged one by one, too. An empty list of price steps removes them. The prices of service tiers do not outlive a change
 * of the others, of which they might be the cheaper ones then.
 */
function changeFacts(before: Facts, change: Partial<Facts>): Facts {
  const { above, tiers: tiersBefore, ...prices } = { ...before.prices, ...change.prices };
  const tiers = change.prices === undefined ? tiersBefore : change.prices.tiers;
  const steps = above !== undefined && above.length > 0 && { above };
  return {
    ...given(before, factNames),
    ...change,
    ...((before.prices ?? change.prices) && { prices: { ...prices, ...steps, ...(tiers && { tiers }) } }),
  };
}

/** Picks the defined ones of these fields. */
function given<Holder extends object, const Name extends keyof Holder>(
  holder: Holder,
  names: readonly Name[],
): { [Key in Name]?: Exclude<Holder[Key], undefined> } {
  return Object.fromEntries(names.filter((name) => holder[name] !== undefined).map((name) => [name, holder[name]])) as {
    [Key in Name]?: Exclude<Holder[Key], undefined>;
  };
}
