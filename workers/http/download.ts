import { isIP, type LookupFunction } from 'node:net';
import { type Readable, Transform } from 'node:stream';
import { Agent, type Dispatcher } from 'undici';
import { ApiError } from '../../shared/errors.ts';
import { codeOf } from '../../shared/runtime/error-code.ts';
import { abortError } from './aborted.ts';
import { isCompressed } from './exchange.ts';
import { createConnector } from './http-client.ts';
import { isPublicAddress } from './public-address.ts';
import { askNameServers, askSystem, type ResolveHost } from './resolve-host.ts';

/** Maximum size of a fetched file, in bytes. */
const maxFile = 64 * 1024 * 1024;
const maxRedirects = 3;
const connectMs = 10_000;

/** A file being downloaded. */
interface Download {
  /** The receiver reads it to its end or destroys it. Fails with an ApiError. */
  readonly content: Readable;
  /** Its media type as reported by the server, without parameters. */
  readonly type: string | undefined;
}

/** Limits of one download. */
interface DownloadOptions {
  /** Aborts the download at any stage; its reason is thrown if it is an ApiError. */
  readonly signal: AbortSignal;
  /** Longest time (ms) without a byte. */
  readonly silenceMs: number;
}

/**
 * Fetches a file by a link that came from outside.
 * @throws ApiError for a link that must not be followed and for every failure: `server_error` unless `toError` maps it. The
 * reason is in its cause only: reporting it to the caller would map the operator's network.
 */
export type Downloader = (link: string, options: DownloadOptions) => Promise<Download>;

/** Options for all links that a downloader follows. */
export interface DownloaderOptions {
  /** Origin (`http://127.0.0.1:8081`) that may have any address: the vendor's own, which the operator chose. */
  readonly trustedOrigin?: string;
  /** Headers for the trusted origin alone, such as the vendor's key; a redirect to another origin goes without them. */
  readonly trustedHeaders?: Readonly<Record<string, string>>;
  /** Left out: the system for the trusted origin, and the name servers for others. */
  readonly resolveHost?: ResolveHost;
  /** Maximum size of a file. */
  readonly longest?: number;
  /** Maximum time (ms) of a download, from the first lookup to the last byte; omitted: until its signal aborts. */
  readonly maxMs?: number;
  /** Maps a failure to the error that callers see; omitted: a file of the vendor could not be fetched. */
  readonly toError?: (cause: Error) => ApiError;
}

/** Why a link was not followed. */
class RefusedLinkError extends Error {
  constructor(reason: string) {
    super(`the link was not followed: ${reason}`);
  }
}

/** The server of a link could not serve the file now. */
class BusyServerError extends RefusedLinkError {}

/** Whether another try may fetch a file after this failure: its connection broke, or its server was in trouble. */
export function isPassingFailure(error: unknown): boolean {
  if (!(error instanceof ApiError) || !(error.cause instanceof Error)) return false;
  return error.cause instanceof BusyServerError || !(error.cause instanceof RefusedLinkError);
}

/** A file exceeded its size limit; a retry would fail alike. */
export class FileTooLongError extends RefusedLinkError {}

/**
 * Fetches the files that a caller's links name, for vendors that take no links.
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
 * The only code that fetches links from outside (from vendors' answers and callers' requests). It cannot be used to reach into
 * the operator's network: each link and each redirect must lead to public addresses only. An address is checked when its name is
 * resolved, and the connection uses the checked address, so that a name cannot resolve differently later.
 */
export function createDownloader(options: DownloaderOptions): Downloader {
  const {
    trustedOrigin,
    trustedHeaders = {},
    resolveHost,
    longest: maxBytes = maxFile,
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
        const lookup = pinnedLookup(resolveHost ?? (isTrusted ? askSystem : askNameServers()), isTrusted);
        const agent = new Agent({ connect: createConnector({ timeout: connectMs, lookup }) });
        limit.onEnd(() => void agent.destroy().catch(() => undefined));
        const answer = await ask(url, agent, { limit, silenceMs }, isTrusted ? trustedHeaders : {});
        const location = redirectOf(answer);
        if (location === undefined) return receive(answer, limit, maxBytes, failure);
        if (redirects === maxRedirects) throw new RefusedLinkError('it is redirected too often');
        // The rest of the body is not awaited, and a failure of it is ignored.
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
 * The time limit of one download, and the cleanup when it ends. Not `AbortSignal.any` with `AbortSignal.timeout`: nothing keeps a
 * reference to those two, and a timeout that is garbage-collected never fires.
 */
class DownloadLimit {
  private readonly controller = new AbortController();
  private readonly callersSignal: AbortSignal;
  private readonly timer: NodeJS.Timeout | undefined;
  private readonly ends: (() => void)[] = [];

  constructor(callersSignal: AbortSignal, maxMs: number | undefined) {
    this.callersSignal = callersSignal;
    if (callersSignal.aborted) this.abort();
    callersSignal.addEventListener('abort', this.abort);
    if (maxMs !== undefined) this.timer = setTimeout(this.abort, maxMs);
  }

  get signal(): AbortSignal {
    return this.controller.signal;
  }

  readonly abort = (): void => this.controller.abort();

  onEnd(release: () => void): void {
    this.ends.push(release);
  }

  end(): void {
    clearTimeout(this.timer);
    this.callersSignal.removeEventListener('abort', this.abort);
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

/** A host that is already an address is never looked up. */
function checkLiteralAddress({ hostname }: URL): void {
  const address = hostname.replace(/^\[|\]$/g, '');
  if (isIP(address) !== 0 && !isPublicAddress(address)) throw new RefusedLinkError('its address is not public');
}

/** A lookup whose result is what the connection uses. A single address that is not public rejects the name. */
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

/** Follows no redirects. */
async function ask(
  url: URL,
  agent: Agent,
  { limit, silenceMs }: { readonly limit: DownloadLimit; readonly silenceMs: number },
  headers: Readonly<Record<string, string>>,
): Promise<Dispatcher.ResponseData> {
  // Runs from the first interim answer, such as 103 with hints, to the answer: they begin undici's own limit anew, as often as they come.
  let interim: NodeJS.Timeout | undefined;
  const request = agent.request({
    origin: url.origin,
    path: url.pathname + url.search,
    method: 'GET',
    signal: limit.signal,
    headersTimeout: silenceMs,
    bodyTimeout: silenceMs,
    headers: { ...headers, 'user-agent': 'sluice', 'accept-encoding': 'identity' },
    onInfo: () => {
      interim ??= setTimeout(limit.abort, silenceMs);
    },
  });
  return await request.finally(() => clearTimeout(interim));
}

function redirectOf({ statusCode, headers }: Dispatcher.ResponseData): string | undefined {
  return [301, 302, 303, 307, 308].includes(statusCode) ? String(headers.location ?? '') : undefined;
}

function receive(
  answer: Dispatcher.ResponseData,
  limit: DownloadLimit,
  maxBytes: number,
  failure: (thrown: unknown) => ApiError,
): Download {
  const { statusCode, headers, body } = answer;
  if (statusCode !== 200) {
    const reason = `its server answered ${statusCode}`;
    throw statusCode === 429 || statusCode >= 500 ? new BusyServerError(reason) : new RefusedLinkError(reason);
  }
  if (isCompressed(headers)) throw new RefusedLinkError('its server answered in a compressed form');
  if (Number(headers['content-length'] ?? 0) > maxBytes) throw tooLong(maxBytes);
  const content = bounded(body, maxBytes, failure);
  content.once('close', () => limit.end());
  const [type] = String(headers['content-type'] ?? '').split(';');
  return { content, type: type?.trim().toLowerCase() || undefined };
}

/** Passes a body on, and ends it at once when the receiver is destroyed: its server may have stopped sending. */
function bounded(body: Readable, maxBytes: number, failure: (thrown: unknown) => ApiError): Readable {
  let bytes = 0;
  const content = new Transform({
    transform: (chunk: Buffer, _encoding, pass) => {
      bytes += chunk.length;
      if (bytes > maxBytes) pass(failure(tooLong(maxBytes)));
      else pass(null, chunk);
    },
  });
  body.on('error', (error) => content.destroy(failure(error)));
  content.once('close', () => body.destroy());
  // It may fail before anyone reads it, who is told then.
  content.on('error', () => undefined);
  return body.pipe(content);
}

function tooLong(maxBytes: number): FileTooLongError {
  return new FileTooLongError(`it has more than ${maxBytes} bytes`);
}

function vendorFileError(cause: Error): ApiError {
  return new ApiError('server_error', "A file of the model's vendor could not be fetched.", { cause });
}

/** Why a download failed, for the operator. It never includes the link: a signed link is a key. */
function causeOf(thrown: unknown, signal: AbortSignal): Error {
  if (thrown instanceof RefusedLinkError) return thrown;
  return new Error(
    `the link could not be followed (${signal.aborted ? 'it took too long' : (codeOf(thrown) ?? 'unknown')})`,
  );
}
