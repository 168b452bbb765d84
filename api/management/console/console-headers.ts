import type { Middleware } from 'koa';
import type { State } from '../../state.ts';

/**
 * Scripts only from files of our own. Styles also inline: Mantine and the charts set them on elements. `base-uri` is for
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
  // A name that a link of a model's answer holds is not to be looked up before the link is clicked: it may carry off what was said.
  'x-dns-prefetch-control': 'off',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
};

/** Tells browsers what the console's pages may do, and that what accounts and operators are shown is not to be stored. */
export const consoleHeaders: Middleware<State> = (ctx, next) => {
  // The router finds paths in capital letters, too.
  const isData = /^\/(console\/api|admin)\//i.test(ctx.path);
  if (isData || /^\/console(\/|$)/i.test(ctx.path)) ctx.set(headers);
  if (isData) ctx.set('cache-control', 'no-store');
  return next();
};
