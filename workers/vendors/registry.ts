import type { Config, VendorSettings } from '../../shared/config.ts';
import { createOpenAiDialect } from './openai-dialect.ts';
import type { Vendor } from './vendor.ts';

/** Every vendor the gateway knows, by the name its routes call it. */
const factories: Record<keyof Config['vendors'], (settings: VendorSettings) => Vendor> = {
  openai: (settings) => createOpenAiDialect({ name: 'openai', ...settings }),
  sandbox: (settings) => createOpenAiDialect({ name: 'sandbox', ...settings }),
};

/** The vendors that are on. Whoever asks for them closes them. */
export function createVendors(config: Pick<Config, 'vendors'>): Map<string, Vendor> {
  const vendors = new Map<string, Vendor>();
  for (const [name, create] of Object.entries(factories)) {
    const settings = config.vendors[name as keyof Config['vendors']];
    if (settings) vendors.set(name, create(settings));
  }
  return vendors;
}
