import { isIP } from 'node:net';
import { z } from 'zod';
import { address, isPlainAddress, plainAddress } from './vendor-settings.ts';

/**
 * Proxies whose forwarding headers (`X-Forwarded-For`, `-Proto`, `-Host`) are trusted: a number of hops before this process (0:
 * none, Infinity: all), or those with these addresses (`10.0.0.1`, `10.0.0.0/8`).
 */
export type TrustedProxies = number | readonly string[];

/** A longer chain of proxies is a mistake. */
const maxHops = 100;

/** `HOST`. An address of IPv6 stands without brackets, which belong to URLs. */
export const listenAddress = z
  .string()
  .trim()
  .refine((host) => isIP(host) !== 0 || /^[\w.-]+$/.test(host), {
    error: 'must be an address or a name of this machine, without a scheme, a port or brackets: 0.0.0.0 or ::, say',
  });

/** `PUBLIC_URL`: one base URL, or several separated by commas, the main one first. */
export const publicUrls = z
  .string()
  .transform((list) => list.split(',').map((url) => url.trim()))
  .pipe(z.array(address))
  .refine((urls) => urls.every(isPlainAddress), `must be ${plainAddress}`)
  .refine((urls) => !urls.some(isEveryAddress), {
    error: 'must be the address that callers use: 0.0.0.0 and :: are only for HOST, and links with them lead nowhere',
  });

/** Whether a URL has the address that stands for all those of a machine. */
function isEveryAddress(url: string): boolean {
  return URL.canParse(url) && ['0.0.0.0', '[::]'].includes(new URL(url).hostname);
}

/** `TRUST_PROXY`: `false`, `true`, a number of proxies, or addresses and networks separated by commas. */
export const trustedProxies = z.string().transform((value, context): TrustedProxies => {
  if (value === 'false') return 0;
  if (value === 'true') return Number.POSITIVE_INFINITY;
  if (/^\d+$/.test(value) && Number(value) <= maxHops) return Number(value);
  const networks = value.split(',').map((network) => network.trim());
  const wrong = networks.find((network) => !isNetwork(network));
  if (wrong === undefined) return networks;
  context.addIssue({
    code: 'custom',
    message: `expected true, false, a number of proxies up to ${maxHops}, or addresses such as 10.0.0.1, 10.0.0.0/8`,
  });
  return z.NEVER;
});

/** `10.0.0.1`, `10.0.0.0/8`, `fd00::/8`. */
function isNetwork(text: string): boolean {
  const [ip = '', prefix, ...more] = text.split('/');
  const version = isIP(ip);
  if (version === 0 || more.length > 0) return false;
  return prefix === undefined || (/^\d{1,3}$/.test(prefix) && Number(prefix) <= (version === 4 ? 32 : 128));
}

/** Whether a host is this machine's loopback, which no other machine can reach. */
export function isLoopback(host: string): boolean {
  return /^(localhost|127(\.\d{1,3}){3}|\[?::1\]?)$/i.test(host);
}

/** Default models for requests that name none, by capability: only where OpenAI's API requires none. */
export type DefaultModels = Partial<Readonly<Record<'image' | 'video', string>>>;

/** `SLUICE_DEFAULT_MODELS`: `image=gpt-image-2, video=sora-2`. */
export const defaultModels = z.string().transform((list, context): DefaultModels => {
  const models: Record<string, string> = {};
  for (const entry of list.split(',')) {
    const [, capability = '', model = ''] = /^\s*(image|video)\s*=\s*(\S{1,256})\s*$/.exec(entry) ?? [];
    if (model === '' || models[capability] !== undefined) {
      context.addIssue({ code: 'custom', message: 'expected image=MODEL, video=MODEL, or both with a comma between' });
      return z.NEVER;
    }
    models[capability] = model;
  }
  return models;
});
