import { type LookupAddress, lookup as systemLookup } from 'node:dns';
import { BlockList, isIP, type LookupFunction } from 'node:net';
import { Readable } from 'node:stream';
import { Agent, type Dispatcher, request } from 'undici';
import { ApiError } from '../shared/errors.ts';

/** The largest file that is fetched, in bytes. */
const longestFile = 64 * 1024 * 1024;
const mostRedirects = 3;
const connectMs = 10_000;

/** A file on its way here. */
export interface Download {
  /** Whoever gets it reads it to its end or destroys it. Fails with an ApiError. */
  readonly content: Readable;
  /** Its media type, as its server says, without parameters. */
  readonly type: string | undefined;
}

/** Limits of one download. */
export interface DownloadOptions {
  /** Ends the download, under way or not; its reason is what is thrown if it is an ApiError. */
  readonly signal: AbortSignal;
  /** Longest time (ms) without a byte. */
  readonly silenceMs: number;
}

/**
 * Fetches a file by a link that came from outside.
 * @throws ApiError `server_error` for a link that must not be followed and for every failure; its cause says why.
 */
export type Downloader = (link: string, options: DownloadOptions) => Promise<Download>;

/** Resolves a host name to all its addresses, as `dns.lookup` with `all` does. */
export type ResolveHost = (
  host: string,
  callback: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void,
) => void;

/** What holds for all links that a downloader follows. */
export interface DownloaderOptions {
  /** Origin (`http://127.0.0.1:8081`) that may have any address: the vendor's own, which the operator chose. */
  readonly trustedOrigin: string;
  readonly resolveHost?: ResolveHost;
  /** Bytes a file may have. */
  readonly longest?: number;
}

/**
 * The one place that fetches links from outside (vendors' answers name them). It cannot be used to reach into the
 * operator's network: each link and each redirect must lead to public addresses only. An address is checked when its name
 * is resolved, and the connection is made to what was checked, so that a name cannot mean another address later.
 */
export function createDownloader(options: DownloaderOptions): Downloader {
  const { trustedOrigin, resolveHost = resolveAll, longest = longestFile } = options;
  return async (link, { signal, silenceMs }) => {
    let url = readLink(link);
    for (let redirects = 0; ; redirects++) {
      const isTrusted = url.origin === trustedOrigin;
      if (!isTrusted) checkLiteralAddress(url);
      const agent = new Agent({ connect: { timeout: connectMs, lookup: pinnedLookup(resolveHost, isTrusted) } });
      try {
        const answer = await ask(url, agent, signal, silenceMs);
        const location = redirectOf(answer);
        if (location === undefined) return receive(answer, agent, signal, longest);
        if (redirects === mostRedirects) throw refused('it is redirected too often');
        url = readLink(location, url);
      } catch (error) {
        await agent.destroy();
        throw failure(error, signal);
      }
      await agent.destroy();
    }
  };
}

function readLink(link: string, base?: URL): URL {
  let url: URL;
  try {
    url = new URL(link, base);
  } catch {
    throw refused('it is no URL');
  }
  if (url.protocol !== 'https:' && url.protocol !== 'http:') throw refused('it is neither https nor http');
  if (url.username !== '' || url.password !== '') throw refused('it holds credentials');
  return url;
}

/** A host that is an address already is never looked up. */
function checkLiteralAddress({ hostname }: URL): void {
  const address = hostname.replace(/^\[|\]$/g, '');
  if (isIP(address) !== 0 && !isPublicAddress(address)) throw refused('its address is not public');
}

const resolveAll: ResolveHost = (host, callback) => systemLookup(host, { all: true }, callback);

/** A lookup whose answer is what the connection is made to. One address that is not public spoils the name. */
function pinnedLookup(resolveHost: ResolveHost, isTrusted: boolean): LookupFunction {
  return (host, { all }, callback) => {
    resolveHost(host, (error, addresses) => {
      const [first] = addresses ?? [];
      if (error !== null || first === undefined) {
        callback(error ?? refused('its host has no address'), '');
      } else if (!isTrusted && !addresses.every(({ address }) => isPublicAddress(address))) {
        callback(refused('its address is not public'), '');
      } else if (all) {
        callback(null, addresses);
      } else {
        callback(null, first.address, first.family);
      }
    });
  };
}

/** Follows no redirect by itself. */
function ask(url: URL, agent: Agent, signal: AbortSignal, silenceMs: number): Promise<Dispatcher.ResponseData> {
  return request(url, {
    dispatcher: agent,
    signal,
    headersTimeout: silenceMs,
    bodyTimeout: silenceMs,
    headers: { 'user-agent': 'sluice', 'accept-encoding': 'identity' },
  });
}

function redirectOf({ statusCode, headers }: Dispatcher.ResponseData): string | undefined {
  return [301, 302, 303, 307, 308].includes(statusCode) ? String(headers.location ?? '') : undefined;
}

function receive(answer: Dispatcher.ResponseData, agent: Agent, signal: AbortSignal, longest: number): Download {
  const { statusCode, headers, body } = answer;
  if (statusCode !== 200) throw refused(`its server answered ${statusCode}`);
  if (Number(headers['content-length'] ?? 0) > longest) throw refused(`it has more than ${longest} bytes`);
  const content = Readable.from(bounded(body, signal, longest), { objectMode: false });
  // Also where nobody has read: then the generator above has not begun, and ends nothing.
  content.once('close', () => void agent.destroy());
  const [type] = String(headers['content-type'] ?? '').split(';');
  return { content, type: type?.trim().toLowerCase() || undefined };
}

async function* bounded(body: Readable, signal: AbortSignal, longest: number): AsyncGenerator<Buffer> {
  let bytes = 0;
  try {
    for await (const chunk of body) {
      bytes += chunk.length;
      if (bytes > longest) throw refused(`it has more than ${longest} bytes`);
      yield chunk;
    }
  } catch (error) {
    throw failure(error, signal);
  }
}

function refused(reason: string): ApiError {
  return failed(new Error(`the link was not followed: ${reason}`));
}

function failed(cause: Error): ApiError {
  return new ApiError('server_error', "A file of the model's vendor could not be fetched.", { cause });
}

/** The error that a caller sees. The link is in none: a signed one is a key. */
function failure(thrown: unknown, signal: AbortSignal): ApiError {
  if (signal.aborted) {
    const reason: unknown = signal.reason;
    return reason instanceof ApiError ? reason : new ApiError('cancelled', 'The request was cancelled.');
  }
  if (thrown instanceof ApiError) return thrown;
  const { code = 'unknown' } = thrown as NodeJS.ErrnoException;
  return failed(new Error(`the link could not be followed (${code})`));
}

/** IPv4 that leads nowhere public (https://www.iana.org/assignments/iana-ipv4-special-registry). */
const special4: readonly [network: string, prefix: number][] = [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.88.99.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  ['224.0.0.0', 3],
];

/**
 * IPv6 inside the global range that is not what it seems: protocol assignments with Teredo, documentation, and 6to4, which
 * holds any IPv4 (https://www.iana.org/assignments/iana-ipv6-special-registry).
 */
const special6: readonly [network: string, prefix: number][] = [
  ['2001::', 23],
  ['2001:db8::', 32],
  ['2002::', 16],
  ['3fff::', 20],
];

const special = new BlockList();
for (const [network, prefix] of special4) special.addSubnet(network, prefix, 'ipv4');
for (const [network, prefix] of special6) special.addSubnet(network, prefix, 'ipv6');

/** Only these are given out; loopback, link-local, unique local, mapped IPv4 and NAT64 lie outside. */
const global6 = new BlockList();
global6.addSubnet('2000::', 3, 'ipv6');

/** Whether an address is one of the internet: not this machine's, a private network's, or a cloud's metadata service. */
export function isPublicAddress(address: string): boolean {
  switch (isIP(address)) {
    case 4:
      return !special.check(address, 'ipv4');
    case 6: {
      // The zone of a link-local address is no part of it.
      const [bare = ''] = address.split('%');
      return global6.check(bare, 'ipv6') && !special.check(bare, 'ipv6');
    }
    default:
      return false;
  }
}
