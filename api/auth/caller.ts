import type { KeyKind, KeySettings } from '../../shared/accounts/api-keys.ts';

/** The caller: an account and one of its API keys, with the key's settings. */
export interface Caller extends KeySettings {
  readonly account: string;
  readonly apiKeyId: string;
  /** SHA-256 of the key, by which the database finds it. */
  readonly hash: string;
  readonly kind: KeyKind;
  /** The key's revision when it was read. A different one in Redis means that this caller is stale. */
  readonly revision: number;
}
