import { findVendorRow, type VendorRow, vendorRows } from '../../vendors/vendors.ts';
import {
  keysProblem,
  type SandboxSetting,
  settingName,
  type VendorLimits,
  type VendorSettings,
} from '../vendor-settings.ts';
import type { ConfigurationFile, VendorEntry } from './configuration-file.ts';
import { expected, type Mistake } from './mistake.ts';

type Vendors = Readonly<Record<string, VendorSettings>>;

export interface VendorSources {
  /** Vendors enabled by the environment. */
  readonly vendors: Vendors;
  /** Whether the sandbox is enabled; its address comes only from the environment. */
  readonly sandbox: boolean;
  /** Source of `<VENDOR>_BASE_URL` for vendors without a key there; already validated as URLs. */
  readonly environment: Readonly<Record<string, unknown>>;
}

/** Resolves `SLUICE_SANDBOX` with the file's vendors: `auto` is off as soon as the file enables one. */
export function sandboxSetting(setting: SandboxSetting, file: ConfigurationFile): SandboxSetting {
  const { sandbox, ...others } = file.vendors;
  if (sandbox?.enabled === false) return 'off';
  const turnsOn = Object.values(others).some(({ enabled }) => enabled !== false);
  return setting === 'auto' && turnsOn ? 'off' : setting;
}

/** Addresses of the table's vendors as settings of the environment, for vendors whose key is set there. */
export function addressSettings(file: ConfigurationFile): Readonly<Record<string, string>> {
  return Object.fromEntries(
    vendorRows.flatMap((row) => {
      const baseUrl = Object.hasOwn(file.vendors, row.name) ? file.vendors[row.name]?.baseUrl : undefined;
      return baseUrl === undefined ? [] : [[`${settingName(row)}_BASE_URL`, baseUrl]];
    }),
  );
}

/** The enabled vendors, in the order of their table, then the file's own ones, then the sandbox. */
export function applyVendors(
  sources: VendorSources,
  entries: ConfigurationFile['vendors'],
): { readonly vendors: Vendors; readonly mistakes: readonly Mistake[] } {
  const mistakes: Mistake[] = [];
  const vendors: Record<string, VendorSettings> = {};
  const names = [...vendorRows.map(({ name }) => name), ...Object.keys(entries)].filter((name) => name !== 'sandbox');
  for (const name of new Set([...names, 'sandbox'])) {
    const settings = vendorOf(name, sources, entries[name], mistakes);
    if (settings !== undefined) vendors[name] = settings;
  }
  return { vendors, mistakes };
}

/** Returns undefined if the vendor is off. */
function vendorOf(
  name: string,
  { vendors, sandbox, environment }: VendorSources,
  entry: VendorEntry | undefined,
  mistakes: Mistake[],
): VendorSettings | undefined {
  const before = Object.hasOwn(vendors, name) ? vendors[name] : undefined;
  if (entry === undefined) return before;
  if (entry.enabled === false) return undefined;
  const own = findVendorRow(name);
  const row = findVendorRow(entry.like ?? name) ?? (findVendorRow('openai') as VendorRow);
  const elsewhere = own && (environment[`${settingName(own)}_BASE_URL`] as string | undefined)?.replace(/\/+$/, '');
  const baseUrl = entry.baseUrl ?? before?.baseUrl ?? elsewhere;
  // Only the launcher sets the sandbox's address.
  if (name === 'sandbox' && (!sandbox || baseUrl === undefined)) return undefined;
  if (baseUrl === undefined && (own === undefined || row.needsBaseUrl)) {
    mistakes.push(expected(['vendors', name, 'base_url'], row.needsBaseUrl ? `a URL such as ${row.baseUrl}` : 'a URL'));
  }
  if (entry.apiKey !== undefined && entry.apiKeys !== undefined) {
    mistakes.push({ path: ['vendors', name, 'api_keys'], message: 'expected either api_key or api_keys' });
  }
  const needsKey = row.needsKey && (own !== undefined || row.name !== 'openai');
  const apiKeys = keysOf(entry) ?? before?.apiKeys ?? (needsKey ? [] : ['none']);
  if (apiKeys.length === 0) {
    const or = own === undefined ? '' : `, or ${settingName(own)}_API_KEY in the environment`;
    mistakes.push({ path: ['vendors', name], message: `expected api_key or api_keys${or}` });
  }
  const problem = keysProblem(row, apiKeys);
  if (problem !== undefined) {
    const field = entry.apiKeys === undefined ? 'api_key' : 'api_keys';
    mistakes.push(expected(['vendors', name, field], problem));
  }
  const isOpen = entry.open ?? before?.isOpen ?? row.isOpen === true;
  const { unbilled } = entry;
  const limits = limitsOf(entry);
  return {
    ...{ row, baseUrl: baseUrl ?? row.baseUrl, apiKeys, isOpen },
    ...(unbilled && { unbilled }),
    ...(limits && { limits }),
  };
}

/** The entry's limits; undefined if it sets none. */
function limitsOf({ rpm, tpm, maxParallelRequests, keyLimits, modelLimits }: VendorEntry): VendorLimits | undefined {
  const own = [rpm, tpm, maxParallelRequests].some((limit) => limit !== undefined);
  if (!own && keyLimits === undefined && modelLimits === undefined) return undefined;
  return { vendor: { rpm, tpm, maxParallelRequests }, key: keyLimits ?? {}, models: modelLimits ?? {} };
}

/** One environment variable may contain several keys, separated by commas. */
function keysOf({ apiKey, apiKeys }: VendorEntry): string[] | undefined {
  const given = apiKeys ?? (apiKey === undefined ? undefined : [apiKey]);
  const keys = given?.flatMap((list) => list.split(',')).flatMap((key) => key.trim() || []);
  return keys && [...new Set(keys)];
}
