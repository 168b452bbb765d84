import { createHash } from 'node:crypto';
import type { Endpoint } from '../pipeline/endpoint.ts';
import type { Context } from '../state.ts';
import type { Preferences } from './preferences.ts';

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
