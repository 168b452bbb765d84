import type { SpeechJobRequest } from '../../shared/capabilities/speech.ts';
import type { VideoJob } from '../../shared/capabilities/video.ts';
import type { RoutedModel } from '../../shared/catalogue/catalogue.ts';
import type { Prices, Quantities } from '../../shared/money/cost.ts';
import type { VendorUsage } from '../vendors/vendor.ts';

/** Names of quantities, in a recorded usage, and of their prices. */
const priceOf = { images: 'image', seconds: 'second', characters: 'character' } as const;

/**
 * The usage as recorded: the vendor's, with billed quantities other than tokens added if they have a price, or if the vendor has
 * reported nothing else.
 */
export function recordedUsage(usage: VendorUsage, quantities: Quantities, prices: Prices | undefined): VendorUsage {
  const named = Object.entries(priceOf).flatMap(([name, price]) => {
    const amount = quantities[name as keyof Quantities];
    const isRecorded = amount !== undefined && (usage === null || prices?.[price] !== undefined);
    return isRecorded ? [[name, amount] as const] : [];
  });
  return named.length === 0 ? usage : { ...usage, ...Object.fromEntries(named) };
}

/** Characters that a speech job has spoken: code points, so that an emoji is one. */
export function spokenCharacters({ input }: Pick<SpeechJobRequest, 'input'>): number {
  return [...input].length;
}

/**
 * Length of a video, in seconds: as reported by its vendor, else as requested, else the model's default. Undefined if none of
 * them is known.
 * @param request reads the job's request as JSON text; only called if the vendor reports nothing
 */
export async function videoSeconds(
  made: string | undefined,
  row: RoutedModel | undefined,
  request: () => Promise<string>,
): Promise<number | undefined> {
  // A video that exists has a length: an empty text is none, 0 would cost nothing, and without an end none could be charged.
  const reported = Number(made) > 0 && Number.isFinite(Number(made)) ? made : undefined;
  const said = reported ?? (JSON.parse(await request()) as VideoJob).seconds ?? row?.video?.seconds[0];
  const seconds = Number(said ?? Number.NaN);
  return Number.isFinite(seconds) ? seconds : undefined;
}
