import type { VendorSettings } from '../../shared/config/vendor-settings.ts';
import { findVendorRow, type VendorRow, vendorRows } from '../../shared/vendors/vendors.ts';

/** The row of a vendor; for a name that the table does not have one of OpenAI's wire without deviations. */
function rowOf(name: string): VendorRow {
  return findVendorRow(name) ?? { name, dialect: 'openai', baseUrl: 'http://127.0.0.1:1/v1', needsKey: true };
}

/** What it takes to call a vendor; without an address it is one that cannot be reached. */
export function vendorSettings(name: string, baseUrl = 'http://127.0.0.1:1/v1', apiKey = 'a-key'): VendorSettings {
  const row = rowOf(name);
  return { row, baseUrl, apiKeys: [apiKey], isOpen: row.isOpen === true };
}

/** Vendors that are on, by their names. */
export function vendorsOn(...names: readonly string[]): Record<string, VendorSettings> {
  return Object.fromEntries(names.map((name) => [name, vendorSettings(name)]));
}

/** Every vendor of the table, on. */
export const everyVendor: Readonly<Record<string, VendorSettings>> = vendorsOn(...vendorRows.map(({ name }) => name));
