import { isIP } from 'node:net';
import type { Middleware } from 'koa';
import type { Config } from '../../shared/config/config.ts';
import { isLoopback } from '../../shared/config/ingress-settings.ts';
import { ApiError } from '../../shared/errors.ts';
import { livenessPaths, readinessPaths } from '../endpoints/health.ts';
import type { State } from '../state.ts';
import type { ForwardedHeaders } from './trusted-proxies.ts';

/** Health checks may use any host, such as the address of a pod. */
const healthPaths: ReadonlySet<string> = new Set([...livenessPaths, ...readinessPaths]);

/**
 * Refuses requests under a foreign host name: a page of another site may point its own name at this machine (DNS rebinding),
 * and is then of the same origin. Undefined if no public URL is set and the gateway listens beyond this machine: then any
 * name may be right.
 * @throws ApiError 403.
 */
export function checkHost({
  config,
  forwarded,
}: {
  readonly config: Pick<Config, 'host' | 'publicUrls'>;
  readonly forwarded: ForwardedHeaders;
}): Middleware<State> | undefined {
  const { publicUrls, host } = config;
  if (publicUrls.length === 0 && !isLoopback(host)) return undefined;
  const names = new Set([
    'localhost',
    '127.0.0.1',
    '[::1]',
    host.toLowerCase(),
    ...publicUrls.map((url) => new URL(url).hostname),
  ]);
  const isOwn = (given: string): boolean => {
    const name = given.toLowerCase().replace(/:\d*$/, '');
    // An address cannot be rebound. Without a public URL, only those of this machine are expected.
    return names.has(name) || (publicUrls.length > 0 && isIP(name.replace(/^\[|\]$/g, '')) !== 0);
  };
  // Caches the last name, as callers repeat it.
  let last = '';
  return (ctx, next) => {
    const given = ctx.req.headers.host ?? '';
    if (given === last) return next();
    if (isOwn(given)) {
      last = given;
      return next();
    }
    if (isOwn(forwarded.ingress(ctx.req).host) || healthPaths.has(ctx.path)) return next();
    throw new ApiError(
      'permission_denied',
      'The gateway is not known under the name in the Host header. Its operator can add it to PUBLIC_URL.',
    );
  };
}
