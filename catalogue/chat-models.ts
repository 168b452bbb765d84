import type { Model } from '../shared/catalogue/model.ts';
import { type ChatVendor, chatVendors, makers } from './chat-vendors.ts';
import { type ModelsDevFact, readModelsDev } from './models-dev.ts';
import { type PiAiModel, piAiDate, readPiAi } from './pi-ai.ts';
import { nano, pricesOfModelsDev, pricesOfPiAi } from './prices.ts';
import { tiersOf } from './tier-prices.ts';

type Route = Model['routes'][number];
type Prices = NonNullable<Model['prices']>;
type Modality = NonNullable<Model['input']>[number];

/** One vendor's offer of a chat model, before offers of the same model are merged into one row. */
interface Offer {
  readonly vendor: ChatVendor;
  /** The vendor's name of the model, without the prefix common to all its names. */
  readonly name: string;
  readonly model: string;
  readonly created: number;
  readonly input: readonly Modality[];
  readonly reasoning: boolean;
  /** Whether it accepts an effort. */
  readonly effort: boolean;
  readonly deprecated: boolean;
  readonly facts: Omit<Route, 'vendor' | 'model'>;
}

/** A date in seconds since 1970; a month or a year counts from its first day. */
export function seconds(date: string): number {
  const [year = '', month = '01', day = '01'] = date.split('-');
  return Date.parse(`${year}-${month}-${day}T00:00:00Z`) / 1000;
}

const modelsDev = readModelsDev();

const searchPrices = (low: number, medium: number, high: number): Prices['request'] => ({
  low: nano(low),
  medium: nano(medium),
  high: nano(high),
});
/**
 * Request prices missing from all lists, by the vendor's name of the model:
 * https://docs.perplexity.ai/getting-started/pricing, "Request Pricing".
 */
const requestPrices: Readonly<Record<string, Prices['request']>> = {
  'perplexity/sonar': searchPrices(0.005, 0.008, 0.012),
  'perplexity/sonar-pro': searchPrices(0.006, 0.01, 0.014),
  'perplexity/sonar-reasoning-pro': searchPrices(0.006, 0.01, 0.014),
};
/**
 * Models with costs that these prices cannot express: Deep Research also charges for searches, citations and reasoning (the
 * same page), which no request bounds. Without a price it is refused to accounts that must not run up debt.
 */
const beyondPrices: ReadonlySet<string> = new Set(['perplexity/sonar-deep-research']);

function pricesOf(name: string, fact: ModelsDevFact, listed: PiAiModel | undefined): Prices | undefined {
  if (beyondPrices.has(name)) return undefined;
  const prices = listed ? pricesOfPiAi(listed) : pricesOfModelsDev(fact);
  const request = requestPrices[name];
  return prices && { ...prices, ...(request !== undefined && { request }), ...tiersOf(name, prices) };
}

/** The release date in a model's name: `-2025-09-29`, `-20250929`, or the month, `-2509`. */
function dateInName(name: string): string | undefined {
  const day = /-(20\d\d)-?([01]\d)-?([0-3]\d)(?:$|-)/.exec(name);
  if (day) return `${day[1]}-${day[2]}-${day[3]}`;
  const month = /-(2[3-6])(0[1-9]|1[0-2])$/.exec(name);
  return month ? `20${month[1]}-${month[2]}` : undefined;
}

const kinds: Record<string, Modality> = { pdf: 'file' };

function contents(known: readonly string[], fact: ModelsDevFact): Modality[] {
  const all = [...known, ...(fact.input ?? [])].map((kind) => kinds[kind] ?? (kind as Modality));
  // In a fixed order, so that equal contents give equal lists.
  return (['text', 'image', 'audio', 'video', 'file'] as const).filter((kind) => all.includes(kind));
}

/** Undefined if the vendor has higher prices for longer requests: then the list's window keeps callers below those. */
function windowOf({ contextWindow, cost }: PiAiModel): number | undefined {
  return cost.tiers?.some(({ inputTokensAbove }) => inputTokensAbove >= contextWindow) ? undefined : contextWindow;
}

/** A vendor's name of a model, without a prefix common to all its names, or that of a profile. */
function nameOf({ prefix, profiles = [] }: ChatVendor, id: string): string {
  const start = [...(prefix === undefined ? [] : [prefix]), ...profiles].find((each) => id.startsWith(each)) ?? '';
  return id.slice(start.length);
}

/** The rank of a name's profile in the order of preference; names without one come last. */
function profileRank({ profiles = [] }: ChatVendor, id: string): number {
  const rank = profiles.findIndex((profile) => id.startsWith(profile));
  return rank < 0 ? profiles.length : rank;
}

function offerOf(vendor: ChatVendor, id: string, fact: ModelsDevFact, listed: PiAiModel | undefined): Offer {
  const prices = pricesOf(`${vendor.vendor}/${id}`, fact, listed);
  const contextWindow = listed ? windowOf(listed) : fact.context;
  // Some lists exceed the context window.
  const maxTokens = listed?.maxTokens ?? fact.most;
  const reasoning = listed?.reasoning ?? fact.reasoning ?? false;
  const maxOutputTokens = maxTokens && Math.min(maxTokens, contextWindow ?? maxTokens);
  return {
    vendor,
    name: nameOf(vendor, id),
    model: id,
    created: seconds(dateInName(id) ?? fact.released ?? (listed ? piAiDate() : modelsDev.date)),
    input: contents([...(listed?.input ?? []), ...(vendor.documents?.test(id) ? ['file'] : [])], fact),
    reasoning,
    effort: reasoning && (vendor.efforts?.test(id) ?? true),
    deprecated: fact.deprecated === true && listed === undefined,
    facts: {
      ...(contextWindow && { contextWindow }),
      ...(maxOutputTokens && { maxOutputTokens }),
      ...(prices && { prices }),
    },
  };
}

/** The chat models of a vendor: from pi-ai's list if available, which is newer, else from models.dev's. */
function offersOf(vendor: ChatVendor): Offer[] {
  const fact = (id: string): ModelsDevFact => modelsDev.models[`${vendor.modelsDev}/${id}`] ?? {};
  const described = Object.keys(modelsDev.models)
    .filter((id) => id.startsWith(`${vendor.modelsDev}/`))
    .map((id) => id.slice(vendor.modelsDev.length + 1));
  const offers =
    vendor.piAi !== undefined
      ? readPiAi(vendor.piAi).map((listed) => offerOf(vendor, listed.id, fact(listed.id), listed))
      : described.map((id) => offerOf(vendor, id, fact(id), undefined));
  return offers
    .filter(({ model, deprecated }) => !vendor.without?.test(model) && !deprecated)
    .filter(({ name, model }, _index, all) => {
      const rank = profileRank(vendor, model);
      return all.every((other) => other.name !== name || profileRank(vendor, other.model) >= rank);
    });
}

/**
 * The key that identifies offers of the same model: the last part of its name, which vendors of open models copy from its
 * maker (Fireworks writes 5p2 for 5.2).
 */
function sameModel({ vendor, name }: Offer): string {
  const bare = vendor.dressing === undefined ? name : name.replaceAll(vendor.dressing, '');
  const last = bare.slice(bare.lastIndexOf('/') + 1).toLowerCase();
  return last.replace(/(?<=\d)p(?=\d)/g, '.');
}

/** Whether two offers accept the same requests: a route must not accept what another one rejects. */
function alike(a: Offer, b: Offer): boolean {
  const sameInput = a.input.includes('image') === b.input.includes('image');
  return a.reasoning === b.reasoning && a.effort === b.effort && sameInput;
}

function idOf(first: Offer, offers: readonly Offer[]): string {
  if (first.vendor.maker !== undefined) return first.name;
  const withMaker = offers.find(({ name }) => name.includes('/'));
  return offers.length > 1 && withMaker ? withMaker.name : `${first.vendor.vendor}/${first.name}`;
}

function makerOf(first: Offer, offers: readonly Offer[]): string {
  const [named] = offers.flatMap(({ vendor: { makerEnd = '/' }, name }) =>
    name.includes(makerEnd) ? name.toLowerCase().split(makerEnd, 1) : [],
  );
  return first.vendor.maker ?? (named === undefined ? first.vendor.vendor : (makers[named] ?? named));
}

function rowOf(offers: readonly [Offer, ...Offer[]]): Model {
  const [first] = offers;
  return {
    id: idOf(first, offers),
    created: first.created,
    ownedBy: makerOf(first, offers).replace(/[^a-z0-9-]/g, '-'),
    capability: 'chat',
    routes: offers.map(({ vendor, model, facts }, index) => ({
      ...{ vendor: vendor.vendor, model },
      ...(index > 0 && facts),
    })),
    input: offers.map(({ input }) => [...input]).reduce((all, more) => all.filter((kind) => more.includes(kind))),
    output: ['text'],
    reasoning: first.reasoning,
    ...first.facts,
    // The vendor's row lists the fields it supports.
    chat: { hints: true, effort: first.effort },
  };
}

/** Rows of the chat models of all vendors except OpenAI, whose rows are maintained by hand (openai-models.ts). */
export function chatModels(): Model[] {
  const rows: [Offer, ...Offer[]][] = [];
  for (const offer of chatVendors.flatMap(offersOf)) {
    // A maker's own models are never merged, however similar their names.
    const same =
      offer.vendor.maker === undefined
        ? rows.find(
            ([first, ...more]) =>
              sameModel(first) === sameModel(offer) &&
              alike(first, offer) &&
              [first, ...more].every(({ vendor }) => vendor !== offer.vendor),
          )
        : undefined;
    if (same) same.push(offer);
    else rows.push([offer]);
  }
  return rows.map(rowOf);
}
