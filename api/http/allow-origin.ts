import type { Middleware } from 'koa';
import { ApiError } from '../../shared/errors.ts';
import type { State } from '../state.ts';

/**
 * Refuses WebSockets opened by pages of other sites: browsers do not block them, but send their Origin. Allowed are pages of
 * the gateway's own address, those of `CORS_ORIGINS` (`*`: all), and clients that send no Origin, as they are not browsers.
 * @param allowed origins: `https://app.example`
 * @param own those of the gateway's base URLs
 * @throws ApiError 403.
 */
export function allowOrigin(allowed: readonly string[], own: readonly string[]): Middleware<State> {
  const origins = new Set([...allowed, ...own]);
  return async (ctx, next) => {
    const origin = ctx.get('origin');
    const isAllowed = origin === '' || origins.has('*') || origins.has(origin) || isOf(origin, ctx.get('host'));
    if (!isAllowed) throw new ApiError('permission_denied', 'Pages of this origin may not open a WebSocket here.');
    await next();
  };
}

/** Whether a page came from this host by any scheme: a proxy may have terminated TLS. */
function isOf(origin: string, host: string): boolean {
  return URL.canParse(origin) && new URL(origin).host === host.toLowerCase();
}
