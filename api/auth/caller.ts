import type { KeyKind, KeySettings } from '../../shared/accounts/api-keys.ts';

/** Who calls: an account by one of its API keys, with what is set for the key. */
export interface Caller extends KeySettings {
  readonly account: string;
  readonly apiKeyId: string;
  /** SHA-256 of the key, by which the database knows it. */
  readonly hash: string;
  readonly kind: KeyKind;
  /** The key's revision when it was read: another one in Redis tells that this is old. */
  readonly revision: number;
}
