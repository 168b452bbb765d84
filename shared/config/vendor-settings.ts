import { z } from 'zod';
import { type VendorRow, vendorRows } from '../vendors/vendors.ts';
import { ConfigError, parseSettings } from './config-error.ts';

/** A base URL, without trailing slash. */
export const address = z.url({ protocol: /^https?$/ }).transform((url) => url.replace(/\/+$/, ''));

/** What is asked of an address to which paths are appended. */
export const plainAddress = 'an address without a login, and without ? or # behind it';

/** Whether paths can be appended to an address, and nothing of it is lost. One that is no URL has been found before. */
export function isPlainAddress(url: string): boolean {
  if (!URL.canParse(url)) return true;
  const { username, password } = new URL(url);
  return username === '' && password === '' && !/[?#]/.test(url);
}

/** What may be asked of a vendor; what is left out has no limit. */
export interface CapacityLimits {
  /** Requests a minute. */
  readonly rpm?: number | undefined;
  /** Tokens a minute, of input and output. */
  readonly tpm?: number | undefined;
  readonly maxParallelRequests?: number | undefined;
}

/** The limits of a vendor. */
export interface VendorLimits {
  /** Of the vendor: all of its keys and models together. */
  readonly vendor: CapacityLimits;
  /** Of each of its keys, all models together. */
  readonly key: CapacityLimits;
  /** Of each of its keys for one model, by the vendor's name of the model. */
  readonly models: Readonly<Record<string, CapacityLimits>>;
}

/** Settings for calling a vendor. */
export interface VendorSettings {
  /** The table row whose wire format it uses. */
  readonly row: VendorRow;
  /** Including the version, without trailing slash. */
  readonly baseUrl: string;
  /** At least one. */
  readonly apiKeys: readonly string[];
  /** Whether any model can be requested as `vendor/model`. */
  readonly isOpen: boolean;
  /** Items not billed in addition to model prices, by operator-facing names; left out: none known. */
  readonly unbilled?: readonly string[] | undefined;
  /** Left out: calls are not limited. */
  readonly limits?: VendorLimits | undefined;
}

/** Several keys are separated by commas. */
const keyList = z
  .string()
  .transform((list) => [...new Set(list.split(',').map((key) => key.trim()))])
  .pipe(z.array(z.string().min(1, 'must not have an empty key among its keys')));

/** What a vendor's keys would have to be, if one of them cannot be sent or does not have the vendor's format. */
export function keysProblem({ keyForm }: VendorRow, keys: readonly string[]): string | undefined {
  if (!keys.every((key) => /^(?!["'])[\x21-\x7e]*$/.test(key))) {
    return 'printable characters of ASCII, without spaces, and without quotes around them';
  }
  const isPair = keyForm !== 'pair' || keys.every((key) => /^[^:]+:[^:]+$/.test(key));
  return isPair ? undefined : 'ACCESS_KEY:SECRET_KEY';
}

/** The name of a vendor in settings: `LM_STUDIO` for `lm-studio`. */
export function settingName({ name }: VendorRow): string {
  return name.toUpperCase().replaceAll('-', '_');
}

/** The settings that enable a vendor of the table. */
export function settingsToTurnOn(row: VendorRow): string[] {
  const setting = settingName(row);
  return [
    ...(row.needsKey ? [`${setting}_API_KEY`] : []),
    ...(!row.needsKey || row.needsBaseUrl === true ? [`${setting}_BASE_URL`] : []),
  ];
}

/** `<VENDOR>_API_KEY` and `<VENDOR>_BASE_URL` of every vendor. */
const keys = z.object(Object.fromEntries(vendorRows.map((row) => [`${settingName(row)}_API_KEY`, keyList.optional()])));
const addresses = z.object(
  Object.fromEntries(
    vendorRows.map((row) => [
      `${settingName(row)}_BASE_URL`,
      address.refine(isPlainAddress, `must be ${plainAddress}`).optional(),
    ]),
  ),
);

/** The names of all vendor settings. */
export const vendorSettingNames: readonly string[] = [...Object.keys(keys.shape), ...Object.keys(addresses.shape)];

/** `SLUICE_SANDBOX`: `auto` is on while no vendor key is set; `priced` is on, with prices for its models. */
export const sandboxSettings = ['auto', 'on', 'priced', 'off'] as const;
export type SandboxSetting = (typeof sandboxSettings)[number];

/**
 * The vendors that the environment enables, in the order of their table, and whether the sandbox is enabled.
 * @throws ConfigError
 */
export function readVendorSettings(
  given: Readonly<Record<string, unknown>>,
  sandboxSetting: SandboxSetting,
): { readonly vendors: Readonly<Record<string, VendorSettings>>; readonly sandbox: boolean } {
  const keysOf = parseSettings(keys, given);
  const addressOf = parseSettings(addresses, given);
  const hasVendorKey = vendorRows.some((row) => row.needsKey && keysOf[`${settingName(row)}_API_KEY`] !== undefined);
  const sandbox = sandboxSetting === 'auto' ? !hasVendorKey : sandboxSetting !== 'off';
  const vendors: Record<string, VendorSettings> = {};
  for (const row of vendorRows) {
    const { name, needsKey } = row;
    const apiKeys = keysOf[`${settingName(row)}_API_KEY`];
    const baseUrl = addressOf[`${settingName(row)}_BASE_URL`];
    const isOn = needsKey ? apiKeys !== undefined : baseUrl !== undefined && (name !== 'sandbox' || sandbox);
    if (!isOn) continue;
    if (row.needsBaseUrl && baseUrl === undefined) {
      const setting = settingName(row);
      throw new ConfigError(
        `${setting}_API_KEY is set, but not ${setting}_BASE_URL, such as ${row.baseUrl}: set both.`,
      );
    }
    const problem = keysProblem(row, apiKeys ?? []);
    if (problem !== undefined) throw new ConfigError(`${settingName(row)}_API_KEY must be ${problem}.`);
    // A vendor that accepts callers without a key accepts any key.
    vendors[name] = { row, baseUrl: baseUrl ?? row.baseUrl, apiKeys: apiKeys ?? ['none'], isOpen: row.isOpen === true };
  }
  return { vendors, sandbox };
}

/**
 * Refuses vendors whose base URL leads back to this gateway: one request would come back to it again and again, with a job each time.
 * Client libraries read some of these settings, too, and have them set to it.
 * @param ownUrls base URLs of the gateway
 * @throws ConfigError naming the first vendor
 */
export function refuseOwnVendors(vendors: Readonly<Record<string, VendorSettings>>, ownUrls: readonly string[]): void {
  const own = new Set(ownUrls.map(plainBase));
  const [name, vendor] = Object.entries(vendors).find(([, { baseUrl }]) => own.has(plainBase(baseUrl))) ?? [];
  if (vendor === undefined) return;
  const setting = vendorRows.some((row) => row.name === name) ? `${settingName(vendor.row)}_BASE_URL, or ` : '';
  throw new ConfigError(
    `The vendor ${name} has an address of this gateway, ${vendor.baseUrl}: each request would come back to it without end. Correct ${setting}its base_url in the configuration file.`,
  );
}

/** A base URL without what is added to it for clients, and with one name for this machine. */
function plainBase(url: string): string {
  return new URL(url).href.replace(/(\/v1)?\/*$/, '').replace('//localhost', '//127.0.0.1');
}
