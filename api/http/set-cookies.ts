import type { Context } from '../state.ts';
import type { BaseUrls } from './request-address.ts';
import type { ForwardedHeaders } from './trusted-proxies.ts';

/** Whether the caller reached the gateway by https: at one of its own URLs, or through a proxy that is believed. */
export function isSecure(
  ctx: Context,
  { baseUrls, forwarded }: { readonly baseUrls: BaseUrls; readonly forwarded: ForwardedHeaders },
): boolean {
  return baseUrls.of(ctx.req).startsWith('https:') || forwarded.ingress(ctx.req).protocol === 'https';
}

/** Sets cookies; those set over https are `Secure`. @param cookies as in `Set-Cookie` */
export function setCookies(
  ctx: Context,
  services: { readonly baseUrls: BaseUrls; readonly forwarded: ForwardedHeaders },
  cookies: readonly string[],
): void {
  const secure = isSecure(ctx, services);
  for (const cookie of cookies) {
    ctx.append('set-cookie', secure && !/;\s*secure\b/i.test(cookie) ? `${cookie}; Secure` : cookie);
  }
}
