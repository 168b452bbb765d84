import { createHash } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { type KeySettings, maxCacheSeconds, type Priority } from '../../shared/accounts/api-key.ts';
import { ApiError } from '../../shared/errors.ts';
import type { Endpoint } from '../pipeline/endpoint.ts';
import { readIdempotencyKey } from '../pipeline/request-fields.ts';
import type { Context } from '../state.ts';

/** A caller's preferences for its request, from headers. */
export interface Preferences {
  /** From `Idempotency-Key`. */
  readonly idempotencyKey: string | undefined;
  /** From `X-Stainless-Timeout` (seconds), in ms: how long the caller will wait. */
  readonly deadlineMs: number | undefined;
  /** `Prefer: respond-async`: respond with 202 and the job; `wait=N`, also alone, first waits that long (ms) for the result to begin. */
  readonly respondAsync: boolean;
  readonly waitMs: number;
  /** `Prefer: quote`: respond with what the request may cost and how long it would wait, and run nothing. */
  readonly quote: boolean;
  /** From `X-Sluice-Cache` (seconds), in ms: how old a cached answer may be; 0: none is wanted, and none is cached; undefined: as the key says. */
  readonly cacheMs: number | undefined;
  /** From `X-Sluice-Single-Flight`: whether identical requests at once share one job; undefined: as the key says. */
  readonly singleFlight: boolean | undefined;
  /** From `X-Sluice-Start-By` (seconds), in ms: how long the request may wait until it begins; undefined: up to its deadline. */
  readonly startByMs: number | undefined;
  /** From `X-Sluice-Priority`; undefined: as its `service_tier` says, or else its key. */
  readonly priority: Priority | undefined;
  /** From `X-Stainless-Retry-Count`: how many times the client library has retried the request; undefined: it does not say. */
  readonly retries: number | undefined;
  /** From `X-Sluice-On-Disconnect`. */
  readonly onDisconnect: 'cancel' | 'continue' | undefined;
}

const maxDeadlineMs = 86_400_000;
const maxStartBySeconds = 86_400;
/** Longer bodies (bytes) are not compared: hashing them would hold up the event loop. */
const maxCompared = 1024 * 1024;
/** Hexadecimal digits of a name: 128 bits. */
const nameLength = 32;

/** Reads the preferences. @throws ApiError 400 that names the header at fault. */
export function readPreferences(headers: IncomingHttpHeaders): Preferences {
  const preferred = readPrefer(headers.prefer);
  return {
    idempotencyKey: readIdempotencyKey(headers['idempotency-key']),
    deadlineMs: readTimeout(headers['x-stainless-timeout']),
    respondAsync: preferred.respondAsync,
    waitMs: preferred.waitMs,
    quote: preferred.quote,
    cacheMs: readCache(headers['x-sluice-cache']),
    singleFlight: readSingleFlight(headers['x-sluice-single-flight']),
    startByMs: readStartBy(headers['x-sluice-start-by']),
    priority: readPriority(headers['x-sluice-priority']),
    retries: readRetries(headers['x-stainless-retry-count']),
    onDisconnect: readOnDisconnect(headers['x-sluice-on-disconnect']),
  };
}

type Header = string | string[] | undefined;

function invalid(header: string, expected: string): ApiError {
  return new ApiError('invalid_request_error', `Invalid header ${header}: expected ${expected}.`, { param: header });
}

/** SDKs send it on their own (`NOT_GIVEN`, `0` for less than a second): anything but a positive number is ignored. */
function readTimeout(value: Header): number | undefined {
  if (value === undefined) return undefined;
  const seconds = Number(value);
  if (!Number.isFinite(seconds) || seconds <= 0) return undefined;
  return Math.min(Math.ceil(seconds * 1000), maxDeadlineMs);
}

function readCache(value: Header): number | undefined {
  if (value === undefined) return undefined;
  if (typeof value !== 'string' || !/^\d{1,6}$/.test(value) || Number(value) > maxCacheSeconds) {
    throw invalid('X-Sluice-Cache', `a whole number of seconds up to ${maxCacheSeconds}`);
  }
  return Number(value) * 1000;
}

/** How old a cached answer to a request may be, in ms, as the header says, or else its key; 0: none is wanted, and none is cached. */
export function cacheMsOf(
  { cacheMs }: Pick<Preferences, 'cacheMs'>,
  { cacheSeconds = 0 }: Pick<KeySettings, 'cacheSeconds'>,
): number {
  return cacheMs ?? cacheSeconds * 1000;
}

function readSingleFlight(value: Header): boolean | undefined {
  if (value === undefined) return undefined;
  if (value !== '0' && value !== '1') throw invalid('X-Sluice-Single-Flight', '"1" or "0"');
  return value === '1';
}

function readStartBy(value: Header): number | undefined {
  if (value === undefined) return undefined;
  const seconds = typeof value === 'string' && /^\d{1,5}(\.\d{1,3})?$/.test(value) ? Number(value) : 0;
  if (seconds <= 0 || seconds > maxStartBySeconds) {
    throw invalid('X-Sluice-Start-By', `a number of seconds from 0.001 to ${maxStartBySeconds}`);
  }
  return seconds * 1000;
}

function readPriority(value: Header): Priority | undefined {
  if (value === undefined || value === 'low' || value === 'normal' || value === 'high') return value;
  throw invalid('X-Sluice-Priority', '"low", "normal" or "high"');
}

/** SDKs send it on their own: anything but a whole number is ignored. */
function readRetries(value: Header): number | undefined {
  return typeof value === 'string' && /^\d{1,4}$/.test(value) ? Number(value) : undefined;
}

function readOnDisconnect(value: Header): 'cancel' | 'continue' | undefined {
  if (value === undefined || value === 'cancel' || value === 'continue') return value;
  throw invalid('X-Sluice-On-Disconnect', '"cancel" or "continue"');
}

const nothingPreferred = { respondAsync: false, waitMs: 0, quote: false };

/** Reads `Prefer` (RFC 7240), which requires that unknown preferences, and unknown parameters, are ignored. */
function readPrefer(value: Header): Pick<Preferences, 'respondAsync' | 'waitMs' | 'quote'> {
  if (value === undefined) return nothingPreferred;
  const preferences = parsePrefer(Array.isArray(value) ? value.join(',') : value);
  const wait = preferences.get('wait');
  const isWaiting = wait !== undefined && /^\d+$/.test(wait);
  return {
    respondAsync: preferences.get('respond-async') === '' || isWaiting,
    waitMs: isWaiting ? Math.min(Number(wait) * 1000, maxDeadlineMs) : 0,
    quote: preferences.get('quote') === '',
  };
}

/** What is between commas, and between semicolons, outside of quotes. */
const betweenCommas = /(?:[^,"]|"(?:[^"\\]|\\.)*"?)+/g;
const betweenSemicolons = /(?:[^;"]|"(?:[^"\\]|\\.)*"?)+/g;

/** Preferences by name, in lower case, with their values; '' without one. Of several with one name the first counts. */
function parsePrefer(text: string): ReadonlyMap<string, string> {
  const preferences = new Map<string, string>();
  for (const part of text.match(betweenCommas) ?? []) {
    const [preference = '', ...values] = (part.match(betweenSemicolons)?.[0] ?? '').split('=');
    const name = preference.trim().toLowerCase();
    const value = values.join('=').trim();
    if (preferences.has(name)) continue;
    const quoted = /^"(.*)"$/.exec(value)?.[1];
    preferences.set(name, quoted?.replace(/\\(.)/g, '$1') ?? value);
  }
  return preferences;
}

/** Hash of an idempotency key and its scope; '' for a request without one. */
export function idempotencyHash(ctx: Context, endpoint: Endpoint, { idempotencyKey }: Preferences): string {
  return idempotencyKey === undefined ? '' : sha256(idempotencyScope(ctx, endpoint) + idempotencyKey);
}

/** Hexadecimal. */
export function sha256(content: string | Uint8Array): string {
  return createHash('sha256').update(content).digest('hex');
}

/**
 * The name under which retries that a client library makes on its own find the job of an earlier try: of the same API key, to
 * the same path, with the same body. Only for libraries that say how often they have retried. Undefined if a retry is to be a
 * request of its own: the key or the header says that a request ends with its connection, or the request can be repeated
 * another way.
 */
export function retryName(
  { state, method, url, headers }: Context,
  preferences: Preferences,
  body: Uint8Array,
): string | undefined {
  if (body.byteLength > maxCompared || !mayReturn(preferences, state.caller)) return undefined;
  // The caller's own name of the request tells apart what is otherwise equal.
  const own = headers['x-client-request-id'] ?? '';
  const about = JSON.stringify([state.caller.apiKeyId, method, url, own]);
  return createHash('sha256').update(about).update(body).digest('hex').slice(0, nameLength);
}

/** Whether a request may come again in place of one whose connection broke, by its headers and its key. */
function mayReturn(preferences: Preferences, { onDisconnect }: Pick<KeySettings, 'onDisconnect'>): boolean {
  if ((preferences.onDisconnect ?? onDisconnect) === 'cancel') return false;
  return preferences.idempotencyKey === undefined && !preferences.respondAsync && !preferences.cacheMs;
}

/**
 * Whether a request is a retry that may find the job of an earlier try.
 * @param bytes of its body, if that is known before it is read
 */
export function mayAdopt(
  preferences: Preferences,
  caller: Pick<KeySettings, 'onDisconnect'>,
  bytes: number | undefined,
): boolean {
  return (
    (preferences.retries ?? 0) > 0 && bytes !== undefined && bytes <= maxCompared && mayReturn(preferences, caller)
  );
}

/** The scope of an idempotency key: used on two endpoints, or for two videos to remix, it makes two requests. */
function idempotencyScope({ params }: Context, { name }: Endpoint): string {
  return [name, ...Object.values((params ?? {}) as Record<string, string>), ''].join(' ');
}
