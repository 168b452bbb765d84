import { createHash } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { ApiError } from '../../shared/errors.ts';
import type { Endpoint } from '../pipeline/endpoint.ts';
import type { Context } from '../state.ts';

/** A caller's preferences for its request, from headers. */
export interface Preferences {
  /** From `Idempotency-Key`. */
  readonly idempotencyKey: string | undefined;
  /** From `X-Stainless-Timeout` (seconds), in ms: how long the caller will wait. */
  readonly deadlineMs: number | undefined;
  /** `Prefer: respond-async`: respond with 202 and the job; `wait=N`, also alone, first waits that long (ms) for the result. */
  readonly respondAsync: boolean;
  readonly waitMs: number;
  /** From `X-Sluice-On-Disconnect`. */
  readonly onDisconnect: 'cancel' | 'continue' | undefined;
}

const maxDeadlineMs = 86_400_000;

/** Reads the preferences. @throws ApiError 400 that names the header at fault. */
export function readPreferences(headers: IncomingHttpHeaders): Preferences {
  const preferred = readPrefer(headers.prefer);
  return {
    idempotencyKey: readIdempotencyKey(headers['idempotency-key']),
    deadlineMs: readTimeout(headers['x-stainless-timeout']),
    respondAsync: preferred.respondAsync,
    waitMs: preferred.waitMs,
    onDisconnect: readOnDisconnect(headers['x-sluice-on-disconnect']),
  };
}

type Header = string | string[] | undefined;

function invalid(header: string, expected: string): ApiError {
  return new ApiError('invalid_request_error', `Invalid header ${header}: expected ${expected}.`, { param: header });
}

function readIdempotencyKey(value: Header): string | undefined {
  if (value === undefined) return undefined;
  if (typeof value !== 'string' || !/^[\x20-\x7e]{1,255}$/.test(value)) {
    throw invalid('Idempotency-Key', '1 to 255 printable ASCII characters');
  }
  return value;
}

/** SDKs send it on their own (`NOT_GIVEN`, `0` for less than a second): anything but a positive number is ignored. */
function readTimeout(value: Header): number | undefined {
  if (value === undefined) return undefined;
  const seconds = Number(value);
  if (!Number.isFinite(seconds) || seconds <= 0) return undefined;
  return Math.min(Math.ceil(seconds * 1000), maxDeadlineMs);
}

function readOnDisconnect(value: Header): 'cancel' | 'continue' | undefined {
  if (value === undefined || value === 'cancel' || value === 'continue') return value;
  throw invalid('X-Sluice-On-Disconnect', '"cancel" or "continue"');
}

/** Parses `Prefer` (RFC 7240), which requires that unknown preferences are ignored. */
function readPrefer(value: Header): { respondAsync: boolean; waitMs: number } {
  const preferences = (Array.isArray(value) ? value.join(',') : (value ?? '')).split(',').map((part) => part.trim());
  const respondAsync = preferences.some((part) => part.toLowerCase() === 'respond-async');
  const wait = preferences.map((part) => /^wait\s*=\s*"?(\d{1,5})"?$/i.exec(part)?.[1]).find(Boolean);
  return { respondAsync: respondAsync || wait !== undefined, waitMs: Number(wait ?? 0) * 1000 };
}

/** Hash of an idempotency key and its scope; '' for a request without one. */
export function idempotencyHash(ctx: Context, endpoint: Endpoint, { idempotencyKey }: Preferences): string {
  return idempotencyKey === undefined ? '' : sha256(idempotencyScope(ctx, endpoint) + idempotencyKey);
}

/** Hexadecimal. */
export function sha256(content: string | Uint8Array): string {
  return createHash('sha256').update(content).digest('hex');
}

/** The scope of an idempotency key: used on two endpoints, or for two videos to remix, it makes two requests. */
function idempotencyScope({ params }: Context, { name }: Endpoint): string {
  return [name, ...Object.values((params ?? {}) as Record<string, string>), ''].join(' ');
}
