import type { Config } from '../../shared/config/config.ts';
import { ApiError } from '../../shared/errors.ts';
import type { Context } from '../state.ts';
import type { BaseUrls } from './request-address.ts';

/** Methods without side effects: a page of another site may send them, and cannot read the response. */
const harmless: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS']);

/**
 * Refuses requests that a page of another site makes a browser send (CSRF), as they would carry the user's cookie. Clients
 * other than browsers have neither Origin nor cookie, and pass.
 * @throws ApiError 403.
 */
export function refuseForeignPage(
  ctx: Context,
  services: { readonly config: Config; readonly baseUrls: BaseUrls },
): void {
  if (harmless.has(ctx.method)) return;
  // Only browsers send it, and no page can set it.
  if (ctx.get('sec-fetch-site') === 'same-origin') return;
  const origin = ctx.get('origin');
  const isOwn = origin === '' ? ctx.get('cookie') === '' : isOwnOrigin(ctx, origin, services);
  if (!isOwn) throw new ApiError('permission_denied', 'Only pages of this gateway may do this.');
}

/** Without PUBLIC_URL the gateway's names are unknown, so a page's origin has to equal the requested host. */
function isOwnOrigin(
  ctx: Context,
  origin: string,
  { config, baseUrls }: { readonly config: Config; readonly baseUrls: BaseUrls },
): boolean {
  if (baseUrls.origins.includes(origin)) return true;
  if (config.publicUrls.length > 0 || !URL.canParse(origin)) return false;
  return new URL(origin).host === ctx.get('host').toLowerCase();
}
