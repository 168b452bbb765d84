import type { Config } from '../../shared/config/config.ts';
import { ApiError } from '../../shared/errors.ts';
import type { Context } from '../state.ts';
import type { BaseUrls } from './base-urls.ts';

/** The methods that change nothing: a page of another site may send them, and cannot read what comes back. */
const harmless: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS']);

/**
 * Refuses what a page of another site has a browser send (CSRF): it would come with the cookie of whoever is signed in.
 * Whoever is no browser has neither Origin nor cookie, and passes.
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

/** Without PUBLIC_URL nobody has said under which names the gateway is reached: then its pages come from where they ask. */
function isOwnOrigin(
  ctx: Context,
  origin: string,
  { config, baseUrls }: { readonly config: Config; readonly baseUrls: BaseUrls },
): boolean {
  if (baseUrls.origins.includes(origin)) return true;
  if (config.publicUrls.length > 0 || !URL.canParse(origin)) return false;
  return new URL(origin).host === ctx.get('host').toLowerCase();
}
