import type { Middleware } from 'koa';
import type { State } from '../../state.ts';

/**
 * Scripts only from our own files. Styles also inline, as Mantine and the charts set them on elements. `base-uri` is for
 * bull-board, which has its own folder as the base.
 */
const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data: blob:",
  "media-src 'self' data: blob:",
  "font-src 'self' data:",
  "connect-src 'self'",
  "manifest-src 'self'",
  "form-action 'self'",
  "base-uri 'self'",
  "frame-ancestors 'none'",
].join('; ');

const headers = {
  'content-security-policy': policy,
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  // Reset links have a secret in their query.
  'referrer-policy': 'no-referrer',
  // Links of a model's answer must not be resolved before they are clicked: a host name can exfiltrate the conversation.
  'x-dns-prefetch-control': 'off',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
};

/**
 * Sets the console's security policies, and keeps data of accounts and operators out of caches: a shared one knows of the header
 * `Authorization` that what is asked with it is private, but not of `x-api-key`. Files and streams say themselves what may be kept.
 */
export const consoleHeaders: Middleware<State> = (ctx, next) => {
  // The router ignores case, so this has to.
  const isData = /^\/(console\/api|admin)\//i.test(ctx.path);
  if (isData || /^\/console(\/|$)/i.test(ctx.path)) ctx.set(headers);
  if (isData || /^\/v1\//i.test(ctx.path)) ctx.set('cache-control', 'no-store');
  return next();
};
