import { type Capability, capabilities } from '../../capabilities/capability.ts';
import type { Model, ModelRoute } from '../../catalogue/model.ts';
import { usualTraits } from '../../catalogue/passed-through.ts';
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

/** What a model of a capability is taken to be able to do where neither the catalogue nor the file says. */
const unsaid: Partial<Record<keyof Model, unknown>> = {
  ...usualTraits.embedding,
  ...usualTraits.image,
  ...usualTraits.transcription,
  ...usualTraits.speech,
  chat: { hints: true, effort: true },
  video: { input: false, remix: false },
};

/**
 * A row of the catalogue changed field by field, or a new one.
 * @param mistakes what cannot be used is added here
 * @returns undefined where nothing can be made of it
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
  const { fallbacks: _fallbacks, ...rest } = before ?? {};
  const own = given(entry, ['input', 'output', 'reasoning', 'deprecatedAt', 'created']);
  const changed = { created: 0, ...rest, ...own, id, ownedBy, capability, ...traits };
  return {
    ...withRoutes(changed, before, entry),
    ...(fallbacks !== undefined && fallbacks.length > 0 && { fallbacks }),
  };
}

/** The traits that are said; those that are mappings are changed field by field. */
function traitsOf(
  before: Model | undefined,
  entry: ModelEntry,
  capability: Capability,
  refuse: (key: string, message: string) => void,
): Partial<Model> {
  const traits: Record<string, unknown> = {};
  for (const [key, field, owner] of traitOwners) {
    const said = entry[field];
    if (said !== undefined && owner !== capability) refuse(key, `only models of the capability ${owner} have this`);
    else if (typeof said === 'object')
      traits[field] = { ...(unsaid[field] as object), ...(before?.[field] as object), ...said };
    else if (said !== undefined) traits[field] = said;
    // A chat model without traits takes everything; any other model's endpoint needs to know.
    else if (before === undefined && owner === capability && owner !== 'chat') traits[field] = unsaid[field];
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
 * The row with its routes. What the file says of the model holds for every route that says nothing else; the row's own facts
 * are those of the first route.
 */
function withRoutes(changed: Omit<Model, 'routes'>, before: Model | undefined, entry: ModelEntry): Model {
  const facts = given(entry, factNames);
  const own = changeFacts(changed, facts);
  if (entry.routes === undefined) {
    const routes = (before?.routes ?? []).map((route, place) =>
      place === 0 ? route : { ...route, ...changeFacts(route, facts) },
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

/** Prices are changed one by one, too. Price steps that are emptied are gone. */
function changeFacts(before: Facts, change: Partial<Facts>): Facts {
  const { above, ...prices } = { ...before.prices, ...change.prices };
  const steps = above !== undefined && above.length > 0 && { above };
  return {
    ...given(before, factNames),
    ...change,
    ...((before.prices ?? change.prices) && { prices: { ...prices, ...steps } }),
  };
}

/** These fields of an object, as far as it has them. */
function given<Holder extends object, const Name extends keyof Holder>(
  holder: Holder,
  names: readonly Name[],
): { [Key in Name]?: Exclude<Holder[Key], undefined> } {
  return Object.fromEntries(names.filter((name) => holder[name] !== undefined).map((name) => [name, holder[name]])) as {
    [Key in Name]?: Exclude<Holder[Key], undefined>;
  };
}
