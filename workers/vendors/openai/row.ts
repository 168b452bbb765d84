import type { Offer } from '../../../shared/vendors/vendor-description.ts';
import type { VendorRow } from '../../../shared/vendors/vendors.ts';
import type { Vendor } from '../vendor.ts';
import { createOpenAiDialect, type OpenAiDialectOptions } from './dialect.ts';

/** A vendor that speaks OpenAI's wire with the deviations of its row, and offers what the row lists. */
export function createOpenAiRow({
  row,
  ...options
}: Omit<OpenAiDialectOptions, 'deviations' | 'mediaFields' | 'keyCheck'> & {
  readonly row: Pick<VendorRow, 'offers' | 'chat' | 'mediaFields' | 'keyCheck'>;
}): Vendor {
  const path = row.keyCheck === undefined || row.keyCheck === false ? {} : { keyCheck: row.keyCheck };
  const { chat, mediaFields } = row;
  const differences = { ...(chat && { deviations: chat }), ...(mediaFields && { mediaFields }) };
  const whole: Vendor = createOpenAiDialect({ ...options, ...path, ...differences });
  if (row.offers === undefined) return whole;
  const offered: Pick<Vendor, Offer> = Object.fromEntries(row.offers.map((offer) => [offer, whole[offer]]));
  const { checkKey } = whole;
  const check = checkKey !== undefined && row.keyCheck !== false && { checkKey };
  return { ...offered, ...check, name: whole.name, close: () => whole.close() };
}
