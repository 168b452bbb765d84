import { networkInterfaces } from 'node:os';
import type { Config } from './config.ts';
import { ConfigError } from './config-error.ts';

/** A container host has a network per container: the first ones suffice. */
const maxAddresses = 16;

/**
 * The base URLs at which callers reach an api process, the main one first: those of PUBLIC_URL, else the one of host and port.
 * If it listens on every address, there is a URL for each, and none for `0.0.0.0`, which cannot be opened.
 * @throws ConfigError for a host of one interface (`fe80::1%eth0`) without PUBLIC_URL
 */
export function ownBaseUrls({
  publicUrls,
  host,
  port,
}: Pick<Config, 'publicUrls' | 'host' | 'port'>): readonly [string, ...string[]] {
  const [main, ...others] = publicUrls;
  if (main !== undefined) return [main, ...others];
  if (host.includes('%')) {
    throw new ConfigError(
      `HOST ${host} names an interface, which no URL can: set PUBLIC_URL to the address that callers use.`,
    );
  }
  return listeningUrls(host, port);
}

/** The URLs of a host and a port: if it means every address, one for each, that of another machine first. */
export function listeningUrls(host: string, port: number): readonly [string, ...string[]] {
  const urlOf = (address: string): string => `http://${address.includes(':') ? `[${address}]` : address}:${port}`;
  if (!isEveryAddress(host)) return [urlOf(host)];
  const loopback = [urlOf('localhost'), ...(host.includes(':') ? [urlOf('::1')] : [])];
  const [first = urlOf('127.0.0.1'), ...more] = machineAddresses(host.includes(':')).map(urlOf);
  return [...new Set([first, ...more, urlOf('127.0.0.1'), ...loopback])] as [string, ...string[]];
}

/** Whether a HOST means all addresses of the machine: `0.0.0.0`, `::`. */
export function isEveryAddress(host: string): boolean {
  const url = `http://${host.includes(':') ? `[${host}]` : host}`;
  return URL.canParse(url) && ['0.0.0.0', '[::]', '[::ffff:0:0]'].includes(new URL(url).hostname);
}

/** Advice for a gateway that listens on every address without a PUBLIC_URL: what to open, and what to set. */
export function everyAddressNotice(config: Pick<Config, 'publicUrls' | 'host' | 'port'>): string | undefined {
  if (config.publicUrls.length > 0 || !isEveryAddress(config.host)) return undefined;
  const [main] = ownBaseUrls(config);
  const here = `http://127.0.0.1:${config.port}`;
  const open = main === here ? `open ${here} on it` : `open ${main} from elsewhere, or ${here} on it`;
  return `HOST=${config.host} listens on every address of this machine: ${open}. Set PUBLIC_URL to the address that callers use: links in answers begin with it.`;
}

/** Addresses at which other machines reach this one, IPv4 first. */
function machineAddresses(withIpv6: boolean): readonly string[] {
  const all = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? []);
  const outer = all.filter(({ internal, address }) => !internal && !/^(fe80|169\.254\.)/i.test(address));
  const [ipv4, ipv6] = ['IPv4', 'IPv6'].map((family) => outer.filter((each) => each.family === family));
  return [...(ipv4 ?? []), ...(withIpv6 ? (ipv6 ?? []) : [])].slice(0, maxAddresses).map(({ address }) => address);
}
