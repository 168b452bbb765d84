import type { SpeechJobRequest } from '../../shared/capabilities/speech.ts';
import type { VideoJob } from '../../shared/capabilities/video.ts';
import type { RoutedModel } from '../../shared/catalogue/catalogue.ts';
import type { Quantities } from '../../shared/money/cost.ts';
import type { Prices } from '../../shared/money/prices.ts';
import type { VendorUsage } from '../vendors/vendor.ts';

/** Names of quantities, in a recorded usage, and of their prices. */
const priceOf = { images: 'image', seconds: 'second', characters: 'character' } as const;

/**
 * The usage as it is recorded: the vendor's, with what the answer is paid by beside tokens where a price is for that, or
 * where the vendor has told nothing else.
 */
export function recordedUsage(usage: VendorUsage, quantities: Quantities, prices: Prices | undefined): VendorUsage {
  const named = Object.entries(priceOf).flatMap(([name, price]) => {
    const amount = quantities[name as keyof Quantities];
    const isTold = amount !== undefined && (usage === null || prices?.[price] !== undefined);
    return isTold ? [[name, amount] as const] : [];
  });
  return named.length === 0 ? usage : { ...usage, ...Object.fromEntries(named) };
}

/** Characters that a speech job has spoken: code points, so that an emoji is one. */
export function spokenCharacters({ input }: Pick<SpeechJobRequest, 'input'>): number {
  return [...input].length;
}

/**
 * Length of a video, in seconds: as its vendor says it was made, else as it was asked for, else as is usual for the model.
 * Undefined where none of them tells.
 * @param request reads the job's request as JSON text; only called where the vendor says nothing
 */
export async function videoSeconds(
  made: string | undefined,
  row: RoutedModel | undefined,
  request: () => Promise<string>,
): Promise<number | undefined> {
  const said = made ?? (JSON.parse(await request()) as VideoJob).seconds ?? row?.video?.seconds[0];
  const seconds = Number(said ?? Number.NaN);
  return Number.isFinite(seconds) ? seconds : undefined;
}
