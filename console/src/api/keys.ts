import { replaceRow } from './lists.ts';
import { queryClient } from './query-client.ts';
import { request } from './request.ts';

export type BudgetPeriod = 'day' | 'week' | 'month' | 'never';
export type Priority = 'low' | 'normal' | 'high';

/** An API key as listed. Times in ms since 1970, money in dollars; null: no limit of that kind. */
export interface ApiKey {
  readonly id: string;
  readonly name: string;
  readonly prefix: string;
  readonly kind: 'standard' | 'operator' | 'console';
  readonly status: 'active' | 'expired' | 'revoked';
  readonly created_at: number;
  readonly last_used_at: number | null;
  readonly expires_at: number | null;
  readonly revoked_at: number | null;
  readonly capabilities: readonly string[] | null;
  readonly models: readonly string[] | null;
  readonly rpm: number | null;
  readonly tpm: number | null;
  readonly concurrency: number | null;
  readonly model_limits: Readonly<Record<string, { rpm?: number | null; tpm?: number | null }>> | null;
  readonly budget: { readonly amount: number; readonly period: BudgetPeriod; readonly spent: number } | null;
  readonly on_disconnect: 'cancel' | 'continue' | null;
  readonly unsupported_parameters: 'refuse' | 'drop' | null;
  readonly cache_breakpoints: 'caller' | 'automatic' | null;
  readonly priority: Priority | null;
  readonly max_priority: Priority | null;
  readonly single_flight: boolean | null;
  readonly cache_seconds: number | null;
  /** The key that replaced this one, which works until it expires. */
  readonly rotated_to?: string | null;
}

/** Settings of a key when created or changed. */
export interface KeyValues {
  readonly name: string;
  /** Only for a new operator key. */
  readonly kind?: 'operator';
  readonly expires_at: number | null;
  readonly capabilities: readonly string[] | null;
  readonly models: readonly string[] | null;
  readonly rpm: number | null;
  readonly tpm: number | null;
  readonly concurrency: number | null;
  readonly budget: { readonly amount: number; readonly period: BudgetPeriod } | null;
  readonly model_limits: ApiKey['model_limits'];
  readonly on_disconnect: 'cancel' | 'continue' | null;
  readonly unsupported_parameters: 'refuse' | 'drop' | null;
  readonly cache_breakpoints: 'caller' | 'automatic' | null;
  readonly priority: Priority | null;
  readonly max_priority: Priority | null;
  readonly single_flight: boolean | null;
  readonly cache_seconds: number | null;
}

/** A newly created key: `key` is its text, which is never shown again. */
export type NewApiKey = ApiKey & { readonly key: string };

/** Operations on the keys of an account, whatever their routes. */
export interface KeyCalls {
  /** Path of the list. */
  readonly listPath: string;
  /** Whether a key's `kind` can be set: operators also create operator keys. */
  readonly hasKinds: boolean;
  readonly create: (values: KeyValues) => Promise<NewApiKey>;
  readonly change: (id: string, values: Partial<KeyValues>) => Promise<ApiKey>;
  readonly revoke: (id: string) => Promise<ApiKey>;
  /** @param overlapSeconds how long the old text still works */
  readonly rotate: (id: string, overlapSeconds: number) => Promise<NewApiKey>;
}

/**
 * Builds the operations.
 * @param listPath path for listing and creating keys
 * @param path prefix of a single key's path
 */
function keyCalls(listPath: string, path: string, hasKinds: boolean): KeyCalls {
  const change = async (method: string, address: string, body?: unknown): Promise<ApiKey> => {
    const key = await request<ApiKey>(method, address, { body });
    replaceRow(listPath, key);
    void queryClient.invalidateQueries({ queryKey: [listPath] });
    return key;
  };
  // Its text is shown at once, before the list: it is there this once.
  const make = async (address: string, body: unknown): Promise<NewApiKey> => {
    const key = await request<NewApiKey>('POST', address, { body });
    void queryClient.invalidateQueries({ queryKey: [listPath] });
    return key;
  };
  return {
    listPath,
    hasKinds,
    create: (values) => make(listPath, values),
    change: (id, values) => change('PATCH', `${path}/${id}`, values),
    revoke: (id) => change('DELETE', `${path}/${id}`),
    rotate: (id, overlapSeconds) => make(`${path}/${id}/rotate`, { overlap_seconds: overlapSeconds }),
  };
}

/** The keys of the user's own account. */
export const ownKeys = keyCalls('/keys', '/keys', false);

/** The keys of an account, for operators. */
export function keysOfAccount(account: string): KeyCalls {
  return keyCalls(`/admin/v1/accounts/${encodeURIComponent(account)}/keys`, '/admin/v1/keys', true);
}
