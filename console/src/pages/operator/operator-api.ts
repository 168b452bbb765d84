import { queryClient } from '../../api/query-client.ts';
import { request } from '../../api/request.ts';

/** The owner of keys, limits and usage, as operators see it. Money in dollars, times in ms since 1970. */
export interface Account {
  readonly id: string;
  readonly name: string;
  readonly created_at: number;
  readonly is_unlimited: boolean;
  /** Null: unlimited. */
  readonly balance: number | null;
  readonly suspended: boolean;
  /** Its share of a queue beside others that wait, against theirs. */
  readonly queue_weight: number;
  readonly queue_by_key: boolean;
  /** The highest priority of its requests. */
  readonly max_priority: 'normal' | 'high';
}

/** Credit added to or removed from an account. */
export interface Credit {
  readonly id: string;
  readonly amount: number;
  readonly note: string;
  readonly created_at: number;
  readonly created_by: string;
}

/** A user who can sign in. */
export interface ConsoleUser {
  readonly id: string;
  readonly email: string;
  readonly name: string;
  readonly role: 'user' | 'operator';
  readonly account_id: string;
  /** Null before the account's user has signed in for the first time. */
  readonly account_name: string | null;
  /** A disabled user cannot sign in. */
  readonly disabled: boolean;
  readonly created_at: number;
}

/** Refetches every query whose path starts with one of these. */
async function readAgain(...paths: readonly string[]): Promise<void> {
  await queryClient.invalidateQueries({
    predicate: ({ queryKey }) => paths.some((path) => String(queryKey[0]).startsWith(path)),
  });
}

export async function createAccount(values: { name: string }): Promise<Account> {
  const account = await request<Account>('POST', '/admin/v1/accounts', { body: values });
  await readAgain('/admin/v1/accounts');
  return account;
}

export async function changeAccount(
  id: string,
  values: Partial<
    Pick<Account, 'name' | 'is_unlimited' | 'suspended' | 'queue_weight' | 'queue_by_key' | 'max_priority'>
  >,
): Promise<void> {
  await request('PATCH', `/admin/v1/accounts/${id}`, { body: values });
  // An operator may have changed their own account, and users are listed with its name.
  await readAgain('/admin/v1/accounts', '/admin/v1/users', '/session');
}

/**
 * Adds credit.
 * @param attempt repeats with the same one add it once
 * @param values `amount` in dollars; negative to remove credit
 */
export async function addCredit(id: string, attempt: string, values: { amount: number; note: string }): Promise<void> {
  const headers = { 'idempotency-key': attempt };
  await request('POST', `/admin/v1/accounts/${id}/credits`, { body: values, headers });
  await readAgain('/admin/v1/accounts', '/session');
}

/** Creates a user; `invitation_url` is the link for choosing a password. */
export async function inviteUser(values: {
  email: string;
  role: string;
  account_id?: string;
}): Promise<ConsoleUser & { readonly invitation_url: string }> {
  const user = await request<ConsoleUser & { invitation_url: string }>('POST', '/admin/v1/users', { body: values });
  await readAgain('/admin/v1/users');
  return user;
}

export async function deleteUser(id: string): Promise<void> {
  await request('DELETE', `/admin/v1/users/${id}`);
  await readAgain('/admin/v1/users');
}

export async function changeUser(
  id: string,
  values: { role?: string; account_id?: string; disabled?: boolean },
): Promise<void> {
  await request('PATCH', `/admin/v1/users/${id}`, { body: values });
  await readAgain('/admin/v1/users', '/session');
}

export const resetLinkOf = (id: string): Promise<{ url: string }> =>
  request('POST', `/admin/v1/users/${id}/password-reset`, { body: {} });
