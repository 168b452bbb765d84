import type { Offer, VendorRow } from '../../shared/catalogue/vendors.ts';
import { createOpenAiDialect, type OpenAiDialectOptions } from './openai-dialect.ts';
import type { Vendor } from './vendor.ts';

/** A vendor that speaks OpenAI's wire with the deviations of its row, and offers what the row says. */
export function createOpenAiRow({
  row,
  ...options
}: Omit<OpenAiDialectOptions, 'deviations'> & { readonly row: Pick<VendorRow, 'offers' | 'chat'> }): Vendor {
  const whole: Vendor = createOpenAiDialect({ ...options, ...(row.chat && { deviations: row.chat }) });
  if (row.offers === undefined) return whole;
  const offered: Pick<Vendor, Offer> = Object.fromEntries(row.offers.map((offer) => [offer, whole[offer]]));
  return { ...offered, name: whole.name, close: () => whole.close() };
}
