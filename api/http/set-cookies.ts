import type { Services } from '../services.ts';
import type { Context } from '../state.ts';

/** Whether the caller reached the gateway by https: at one of its own URLs, or through a proxy that is believed. */
export function isSecure(ctx: Context, { baseUrls, forwarded }: Pick<Services, 'baseUrls' | 'forwarded'>): boolean {
  return baseUrls.of(ctx.req).startsWith('https:') || forwarded.ingress(ctx.req).protocol === 'https';
}

/** Sets cookies; those of https are never sent without it. @param cookies as `Set-Cookie` has them */
export function setCookies(
  ctx: Context,
  services: Pick<Services, 'baseUrls' | 'forwarded'>,
  cookies: readonly string[],
): void {
  const secure = isSecure(ctx, services);
  for (const cookie of cookies) {
    ctx.append('set-cookie', secure && !/;\s*secure\b/i.test(cookie) ? `${cookie}; Secure` : cookie);
  }
}
