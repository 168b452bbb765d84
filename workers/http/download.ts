import { type LookupAddress, lookup as systemLookup } from 'node:dns';
import { isIP, type LookupFunction } from 'node:net';
import { Readable } from 'node:stream';
import { Agent, type Dispatcher, request } from 'undici';
import { ApiError } from '../../shared/errors.ts';
import { isPublicAddress } from './public-address.ts';

/** The largest file that is fetched, in bytes. */
const maxFile = 64 * 1024 * 1024;
const maxRedirects = 3;
const connectMs = 10_000;

/** A file on its way here. */
interface Download {
  /** Whoever gets it reads it to its end or destroys it. Fails with an ApiError. */
  readonly content: Readable;
  /** Its media type, as its server says, without parameters. */
  readonly type: string | undefined;
}

/** Limits of one download. */
interface DownloadOptions {
  /** Ends the download, under way or not; its reason is what is thrown if it is an ApiError. */
  readonly signal: AbortSignal;
  /** Longest time (ms) without a byte. */
  readonly silenceMs: number;
}

/**
 * Fetches a file by a link that came from outside.
 * @throws ApiError for a link that must not be followed and for every failure: `server_error` unless its maker says
 * otherwise. Its cause says why; the caller is not told, because the answer would map the operator's network.
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
  readonly trustedOrigin?: string;
  /** Headers for the trusted origin alone, such as the vendor's key; a redirect to another place goes without them. */
  readonly trustedHeaders?: Readonly<Record<string, string>>;
  readonly resolveHost?: ResolveHost;
  /** Bytes a file may have. */
  readonly longest?: number;
  /** How long (ms) a download may take, from the first lookup to the last byte; left out: as long as its signal lets it. */
  readonly maxMs?: number;
  /** What callers see of a failure; left out: that a file of the vendor's could not be fetched. */
  readonly toError?: (cause: Error) => ApiError;
}

/** Why a link was not followed. */
class RefusedLinkError extends Error {
  constructor(reason: string) {
    super(`the link was not followed: ${reason}`);
  }
}

/** A file had more bytes than it may have; another try would end alike. */
export class FileTooLongError extends RefusedLinkError {}

/**
 * Fetches what a caller's link names, for vendors that take no links.
 * @throws ApiError `invalid_request_error` for every link that leads to no file within the limits.
 */
export function createCallerDownloader(
  options: Pick<DownloaderOptions, 'trustedOrigin' | 'resolveHost'> = {},
): Downloader {
  const toError = (cause: Error) =>
    new ApiError(
      'invalid_request_error',
      'A link of the request could not be fetched: it must lead to a public address, and to at most 20 MB within 10 seconds.',
      { cause },
    );
  return createDownloader({ ...options, longest: 20 * 1024 * 1024, maxMs: 10_000, toError });
}

/**
 * The one place that fetches links from outside (vendors' answers and callers' requests name them). It cannot be used to
 * reach into the operator's network: each link and each redirect must lead to public addresses only. An address is checked
 * when its name is resolved, and the connection is made to what was checked, so that a name cannot mean another address
 * later.
 */
export function createDownloader(options: DownloaderOptions): Downloader {
  const {
    trustedOrigin,
    trustedHeaders = {},
    resolveHost = resolveAll,
    longest = maxFile,
    maxMs,
    toError = vendorFileError,
  } = options;
  return async (link, { signal, silenceMs }) => {
    const limit = new DownloadLimit(signal, maxMs);
    const failure = (thrown: unknown): ApiError =>
      signal.aborted ? abortError(signal) : toError(causeOf(thrown, limit.signal));
    try {
      let url = readLink(link);
      for (let redirects = 0; ; redirects++) {
        const isTrusted = url.origin === trustedOrigin;
        if (!isTrusted) checkLiteralAddress(url);
        const agent = new Agent({ connect: { timeout: connectMs, lookup: pinnedLookup(resolveHost, isTrusted) } });
        limit.onEnd(() => void agent.destroy().catch(() => undefined));
        const answer = await ask(url, agent, { signal: limit.signal, silenceMs }, isTrusted ? trustedHeaders : {});
        const location = redirectOf(answer);
        if (location === undefined) return receive(answer, limit, longest, failure);
        if (redirects === maxRedirects) throw new RefusedLinkError('it is redirected too often');
        // What else the server sends is not waited for, and its end is nobody's error.
        answer.body.on('error', () => undefined).destroy();
        url = readLink(location, url);
      }
    } catch (error) {
      limit.end();
      throw failure(error);
    }
  };
}

/**
 * How long one download may go on, and what is left behind when it ends. Not `AbortSignal.any` with `AbortSignal.timeout`:
 * nothing holds those two, and a timeout that is collected never comes.
 */
class DownloadLimit {
  private readonly controller = new AbortController();
  private readonly callersSignal: AbortSignal;
  private readonly timer: NodeJS.Timeout | undefined;
  private readonly ends: (() => void)[] = [];

  constructor(callersSignal: AbortSignal, maxMs: number | undefined) {
    this.callersSignal = callersSignal;
    if (callersSignal.aborted) this.controller.abort();
    callersSignal.addEventListener('abort', this);
    if (maxMs !== undefined) this.timer = setTimeout(() => this.controller.abort(), maxMs);
  }

  get signal(): AbortSignal {
    return this.controller.signal;
  }

  /** The caller's signal was aborted. */
  handleEvent(): void {
    this.controller.abort();
  }

  onEnd(release: () => void): void {
    this.ends.push(release);
  }

  end(): void {
    clearTimeout(this.timer);
    this.callersSignal.removeEventListener('abort', this);
    for (const release of this.ends.splice(0)) release();
  }
}

function readLink(link: string, base?: URL): URL {
  let url: URL;
  try {
    url = new URL(link, base);
  } catch {
    throw new RefusedLinkError('it is no URL');
  }
  if (url.protocol !== 'https:' && url.protocol !== 'http:') {
    throw new RefusedLinkError('it is neither https nor http');
  }
  if (url.username !== '' || url.password !== '') throw new RefusedLinkError('it holds credentials');
  return url;
}

/** A host that is an address already is never looked up. */
function checkLiteralAddress({ hostname }: URL): void {
  const address = hostname.replace(/^\[|\]$/g, '');
  if (isIP(address) !== 0 && !isPublicAddress(address)) throw new RefusedLinkError('its address is not public');
}

const resolveAll: ResolveHost = (host, callback) => systemLookup(host, { all: true }, callback);

/** A lookup whose answer is what the connection is made to. One address that is not public spoils the name. */
function pinnedLookup(resolveHost: ResolveHost, isTrusted: boolean): LookupFunction {
  return (host, { all }, callback) => {
    resolveHost(host, (error, addresses) => {
      const [first] = addresses ?? [];
      if (error !== null || first === undefined) {
        callback(error ?? new RefusedLinkError('its host has no address'), '');
      } else if (!isTrusted && !addresses.every(({ address }) => isPublicAddress(address))) {
        callback(new RefusedLinkError('its address is not public'), '');
      } else if (all) {
        callback(null, addresses);
      } else {
        callback(null, first.address, first.family);
      }
    });
  };
}

/** Follows no redirect by itself. */
function ask(
  url: URL,
  agent: Agent,
  { signal, silenceMs }: DownloadOptions,
  headers: Readonly<Record<string, string>>,
): Promise<Dispatcher.ResponseData> {
  return request(url, {
    dispatcher: agent,
    signal,
    headersTimeout: silenceMs,
    bodyTimeout: silenceMs,
    headers: { ...headers, 'user-agent': 'sluice', 'accept-encoding': 'identity' },
  });
}

function redirectOf({ statusCode, headers }: Dispatcher.ResponseData): string | undefined {
  return [301, 302, 303, 307, 308].includes(statusCode) ? String(headers.location ?? '') : undefined;
}

function receive(
  answer: Dispatcher.ResponseData,
  limit: DownloadLimit,
  longest: number,
  failure: (thrown: unknown) => ApiError,
): Download {
  const { statusCode, headers, body } = answer;
  if (statusCode !== 200) throw new RefusedLinkError(`its server answered ${statusCode}`);
  if (Number(headers['content-length'] ?? 0) > longest) throw tooLong(longest);
  const content = Readable.from(bounded(body, longest, failure), { objectMode: false });
  // Also where nobody has read: then the generator above has not begun, and ends nothing.
  content.once('close', () => limit.end());
  const [type] = String(headers['content-type'] ?? '').split(';');
  return { content, type: type?.trim().toLowerCase() || undefined };
}

async function* bounded(
  body: Readable,
  longest: number,
  failure: (thrown: unknown) => ApiError,
): AsyncGenerator<Buffer> {
  let bytes = 0;
  try {
    for await (const chunk of body) {
      bytes += chunk.length;
      if (bytes > longest) throw tooLong(longest);
      yield chunk;
    }
  } catch (error) {
    throw failure(error);
  }
}

function tooLong(longest: number): FileTooLongError {
  return new FileTooLongError(`it has more than ${longest} bytes`);
}

function vendorFileError(cause: Error): ApiError {
  return new ApiError('server_error', "A file of the model's vendor could not be fetched.", { cause });
}

function abortError({ reason }: AbortSignal): ApiError {
  return reason instanceof ApiError ? reason : new ApiError('cancelled', 'The request was cancelled.');
}

/** Why a download failed, for the operator. The link is in none: a signed one is a key. */
function causeOf(thrown: unknown, signal: AbortSignal): Error {
  if (thrown instanceof RefusedLinkError) return thrown;
  const { code = 'unknown' } = thrown as NodeJS.ErrnoException;
  return new Error(`the link could not be followed (${signal.aborted ? 'it took too long' : code})`);
}
