import type { Capability } from '../capabilities/capability.ts';
import { speechFormats } from '../capabilities/speech.ts';
import type { VendorSettings } from '../config/vendor-settings.ts';
import type { Model, Traits } from './model.ts';
import { withFactsOf } from './with-facts-of.ts';

/**
 * Assumed traits of an unlisted model: everything its vendor's wire format supports. Videos are left out: their sizes and
 * lengths must be known.
 */
export const usualTraits: Readonly<Record<Exclude<Capability, 'video'>, Traits>> = {
  chat: {},
  embedding: { embedding: { dimensions: true, batch: 2048 } },
  image: { image: { tasks: ['generation', 'edit', 'variation'], most: 10, partial: true, responseFormat: true } },
  transcription: { transcription: { timestamps: true, translates: true, streams: true, diarizes: true } },
  // Its callers know whether it has events: a vendor whose model has none rejects a request for them.
  speech: { speech: { formats: [...speechFormats] } },
};

/** Maximum length of an id, also in a list. */
const maxId = 256;
/** Characters that move a terminal's cursor or are not seen: logs, lists and files would show them, or rather not. */
const unseen = /\p{C}/u;

/**
 * The model for an id `vendor/model` of an open vendor: the listed one with that route, on this route alone, or one with
 * assumed traits. Undefined for any other id.
 */
export function passedThrough(
  id: string,
  capability: Capability,
  vendors: Readonly<Record<string, Pick<VendorSettings, 'isOpen'>>>,
  served: readonly Model[],
): Model | undefined {
  const slash = id.indexOf('/');
  const vendor = id.slice(0, Math.max(0, slash));
  const model = id.slice(slash + 1);
  if (model === '' || id.length > maxId || !Object.hasOwn(vendors, vendor) || !vendors[vendor]?.isOpen) return;
  if (unseen.test(id)) return;
  for (const row of served) {
    const route = row.routes.find((each) => each.vendor === vendor && each.model === model);
    if (route === undefined || row.capability !== capability) continue;
    const { fallbacks: _none, ...rest } = route === row.routes[0] ? row : withFactsOf(route, row);
    return { ...rest, id, routes: [route] };
  }
  if (capability === 'video') return undefined;
  return { id, created: 0, ownedBy: vendor, capability, routes: [{ vendor, model }], ...usualTraits[capability] };
}
