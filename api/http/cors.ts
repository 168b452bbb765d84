import type { Middleware } from 'koa';
import { sessionHeaders } from '../pipeline/describe-job.ts';
import type { Context, State } from '../state.ts';

/** Headers that pages may send: those that mean something here. Those of the SDKs and of this gateway have prefixes. */
const allowedHeaders = new Set([
  ...['accept', 'api-key', 'authorization', 'cache-control', 'content-encoding', 'content-type', 'idempotency-key'],
  ...['if-range', 'last-event-id', 'prefer', 'range', 'traceparent', 'tracestate', 'user-agent', 'x-api-key'],
  ...['x-client-request-id', 'x-request-id', ...sessionHeaders],
]);
const allowedPrefixes = ['x-stainless-', 'x-sluice-', 'anthropic-', 'openai-'];

const requestKinds = ['requests', 'tokens'];
const rateLimits = ['limit', 'remaining', 'reset'].flatMap((what) =>
  requestKinds.flatMap((kind) => [`x-ratelimit-${what}-${kind}`, `anthropic-ratelimit-${kind}-${what}`]),
);

/** Response headers that pages may read, besides the always readable ones. */
const exposedHeaders = [
  ...['x-request-id', 'x-client-request-id', 'request-id', 'openai-processing-ms', 'idempotent-replayed'],
  ...['location', 'preference-applied'],
  ...['retry-after', 'retry-after-ms', 'x-should-retry', 'content-range', 'accept-ranges', 'etag', 'allow'],
  ...[
    'x-sluice-vendor',
    'x-sluice-attempts',
    'x-sluice-model',
    'x-sluice-ignored',
    'x-sluice-cost',
    'x-sluice-cache',
    'x-sluice-single-flight',
    'age',
  ],
  ...rateLimits,
].join(', ');

/** Lifetime of a preflight in seconds: the maximum of any browser. */
const rememberedSeconds = 7200;

/**
 * Lets pages of other sites use the API and read result files. Keys are headers, which no browser adds on its own, so a page
 * can do nothing unless its user gave it a key. Cookies are never allowed, and the console and the operator's API are closed
 * to other sites.
 * @param allowed at least one origin (`https://app.example`), or `*` for all
 */
export function cors(allowed: readonly string[]): Middleware<State> {
  const origins = new Set(allowed);
  const isAllowed = (origin: string): boolean => origins.has('*') || origins.has(origin);
  return (ctx, next) => {
    const { origin } = ctx.headers;
    const isFile = ctx.path.startsWith('/results/');
    if (origin === undefined) {
      // A browser that cached a file for an image on some page must request it again for a script.
      if (isFile) ctx.vary('origin');
      return next();
    }
    if (!isFile && !ctx.path.startsWith('/v1/')) return next();
    ctx.vary('origin');
    if (!isAllowed(origin)) return next();
    ctx.set('access-control-allow-origin', origins.has('*') ? '*' : origin);
    if (ctx.method === 'OPTIONS' && ctx.headers['access-control-request-method'] !== undefined) return preflight(ctx);
    ctx.set('access-control-expose-headers', exposedHeaders);
    return next();
  };
}

/** Returns whether the request that a browser is about to send may be sent. */
function preflight(ctx: Context): void {
  ctx.state.endpoint = 'preflight';
  ctx.vary('access-control-request-headers');
  const asked = ctx.get('access-control-request-headers').split(',');
  const allowed = asked.map((name) => name.trim().toLowerCase()).filter(isAllowedHeader);
  ctx.set({
    'access-control-allow-methods': 'GET, HEAD, POST, DELETE',
    'access-control-max-age': String(rememberedSeconds),
    ...(allowed.length > 0 && { 'access-control-allow-headers': allowed.join(', ') }),
  });
  ctx.status = 204;
}

function isAllowedHeader(name: string): boolean {
  return allowedHeaders.has(name) || allowedPrefixes.some((prefix) => name.startsWith(prefix));
}
