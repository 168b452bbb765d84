import { type Dialect, findVendorRow } from '../../shared/catalogue/vendors.ts';
import type { Config, VendorSettings } from '../../shared/config.ts';
import { createAnthropic } from './anthropic.ts';
import { createBlackForestLabs } from './black-forest-labs.ts';
import { createDeepgram } from './deepgram.ts';
import { createElevenLabs } from './elevenlabs.ts';
import { createFal } from './fal.ts';
import { createGemini } from './gemini.ts';
import { createOpenAiRow } from './openai-row.ts';
import { createReplicate } from './replicate.ts';
import type { Vendor } from './vendor.ts';

/** Where a vendor is, and the key to it. */
type VendorOptions = Pick<VendorSettings, 'baseUrl' | 'apiKey'> & { readonly name: string };

/** The adapter of each dialect. */
const factories: Record<Dialect, (options: VendorOptions) => Vendor> = {
  anthropic: createAnthropic,
  'black-forest-labs': createBlackForestLabs,
  deepgram: createDeepgram,
  elevenlabs: createElevenLabs,
  fal: createFal,
  gemini: createGemini,
  replicate: createReplicate,
  openai: (options) => createOpenAiRow(options, findVendorRow(options.name)),
};

/** The vendors that are on. Whoever asks for them closes them. */
export function createVendors(config: Pick<Config, 'vendors'>): Map<string, Vendor> {
  const vendors = new Map<string, Vendor>();
  for (const [name, { dialect, baseUrl, apiKey }] of Object.entries(config.vendors)) {
    vendors.set(name, factories[dialect]({ name, baseUrl, apiKey }));
  }
  return vendors;
}
