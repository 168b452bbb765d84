import { BlockList, isIP } from 'node:net';
import { z } from 'zod';
import { isLoopback } from './ingress-settings.ts';

/** `proxy:3128` is one of http, as curl has it. */
const withScheme = (text: string): string => (/^\w+:\/\//.test(text) ? text : `http://${text}`);

/** Whether a connection can be made to it, and its login be sent. */
function isProxyAddress(url: string): boolean {
  try {
    const { protocol, username, password } = new URL(url);
    return /^https?:$/.test(protocol) && decodeURIComponent(username + password) !== undefined;
  } catch {
    return false;
  }
}

const proxyAddress = z
  .string()
  .transform(withScheme)
  .refine(isProxyAddress, 'must be the address of a proxy of http or https, such as http://proxy.example:3128');

/** Settings of the proxy to vendors, under the names that other programs read, too. */
export const proxySettings = { HTTPS_PROXY: proxyAddress.optional(), NO_PROXY: z.string().optional() };

/** The proxy through which vendors with `https` are called. */
export interface ProxySettings {
  /** May contain a login. */
  readonly url: string;
  /** Hosts that are called directly: names with all below them, addresses, networks; `*`: all. */
  readonly except: readonly string[];
}

/** The same variables in lower case, as curl writes them; those in upper case precede. */
export function withLowerCaseProxies(
  given: Readonly<Record<string, string | undefined>>,
): Readonly<Record<string, string | undefined>> {
  const lower = { HTTPS_PROXY: given.https_proxy, NO_PROXY: given.no_proxy };
  const set = Object.entries(lower).filter(([name, value]) => value && given[name] === undefined);
  return { ...given, ...Object.fromEntries(set) };
}

/** Reads the settings of the proxy; undefined if there is none. */
export function readProxySettings(env: z.output<z.ZodObject<typeof proxySettings>>): ProxySettings | undefined {
  if (env.HTTPS_PROXY === undefined) return undefined;
  const except = (env.NO_PROXY ?? '').split(/[,\s]+/).flatMap((host) => host.toLowerCase() || []);
  return { url: env.HTTPS_PROXY, except };
}

/** Whether an address is called through the proxy: never this machine, nor one of `http`. */
export function isProxied({ protocol, hostname, port }: URL, { except }: ProxySettings): boolean {
  if (protocol !== 'https:' || isLoopback(hostname)) return false;
  const host = hostname.replace(/^\[|\]$/g, '');
  const withPort = `${hostname}:${port || '443'}`;
  return !except.some((rule) => isHostOf(rule, host) || isHostOf(rule, withPort));
}

function isHostOf(rule: string, host: string): boolean {
  if (rule === '*' || rule.replace(/^\[|\]$/g, '') === host) return true;
  const version = isIP(host);
  if (version !== 0) return isInNetwork(rule, host, version === 4 ? 'ipv4' : 'ipv6');
  const name = rule.replace(/^\*?\./, '');
  return host === name || host.endsWith(`.${name}`);
}

function isInNetwork(rule: string, host: string, family: 'ipv4' | 'ipv6'): boolean {
  const [ip = '', prefix = ''] = rule.split('/');
  const isOfFamily = isIP(ip) === (family === 'ipv4' ? 4 : 6);
  if (!isOfFamily || !/^\d{1,3}$/.test(prefix) || Number(prefix) > (family === 'ipv4' ? 32 : 128)) return false;
  const network = new BlockList();
  network.addSubnet(ip, Number(prefix), family);
  return network.check(host, family);
}
