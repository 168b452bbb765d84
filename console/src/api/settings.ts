import { queryOptions } from '@tanstack/react-query';
import { request } from './request.ts';

/** What everybody may know of the gateway, also before signing in. */
export interface Settings {
  readonly sign_up: boolean;
  readonly oidc: { readonly name: string } | null;
  /** Whether users are sent mails. */
  readonly mail: boolean;
  readonly sandbox: boolean;
  /** Without `/v1` and without a slash at the end. */
  readonly base_url: string;
}

export const settingsQuery = queryOptions({
  queryKey: ['/settings'],
  queryFn: ({ signal }) => request<Settings>('GET', '/settings', { signal }),
  staleTime: 10 * 60_000,
});
