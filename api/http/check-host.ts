import { isIP } from 'node:net';
import type { Middleware } from 'koa';
import type { Config } from '../../shared/config/config.ts';
import { isLoopback } from '../../shared/config/ingress-settings.ts';
import { ApiError } from '../../shared/errors.ts';
import { livenessPaths, readinessPaths } from '../endpoints/health.ts';
import type { State } from '../state.ts';
import type { ForwardedHeaders } from './trusted-proxies.ts';

/** Who checks whether a process lives names it as it likes: by the address of a pod, say. */
const healthPaths: ReadonlySet<string> = new Set([...livenessPaths, ...readinessPaths]);

/**
 * Refuses requests under a name that is not the gateway's: a page of another site may have its own name lead to this machine
 * (DNS rebinding), and is then of the same origin. Undefined where nobody has said what the gateway is called and it listens
 * beyond this machine: then every name may be right.
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
    // An address cannot be made to lead elsewhere; where no name is set, only this machine's own are expected.
    return names.has(name) || (publicUrls.length > 0 && isIP(name.replace(/^\[|\]$/g, '')) !== 0);
  };
  // The same callers come again and again under the same name.
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
