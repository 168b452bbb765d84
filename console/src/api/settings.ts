import { queryOptions } from '@tanstack/react-query';
import { request } from './request.ts';

/** Public facts about the gateway, available before sign-in. */
export interface Settings {
  readonly sign_up: boolean;
  readonly oidc: { readonly name: string } | null;
  /** Whether the gateway sends mails to users. */
  readonly mail: boolean;
  readonly sandbox: boolean;
  /** Without `/v1` and without trailing slash. */
  readonly base_url: string;
}

export const settingsQuery = queryOptions({
  queryKey: ['/settings'],
  queryFn: ({ signal }) => request<Settings>('GET', '/settings', { signal }),
  staleTime: 10 * 60_000,
});
