/** Row types of the database, named as its columns are. Times are milliseconds since 1970. */
export interface Tables {
  accounts: AccountsTable;
  api_keys: ApiKeysTable;
  secrets: SecretsTable;
}

/** Random bytes that all processes of a gateway share. */
export interface SecretsTable {
  name: string;
  value: Uint8Array;
}

/** Who owns API keys, limits and usage. */
export interface AccountsTable {
  id: string;
  name: string;
  created_at: number;
}

/** An API key without its text, which is stored nowhere. */
export interface ApiKeysTable {
  id: string;
  account_id: string;
  name: string;
  /** SHA-256 of the whole key, hexadecimal; unique. */
  hash: string;
  /** The key's first characters, by which people recognise it. */
  prefix: string;
  created_at: number;
  revoked_at: number | null;
  /** Unfinished jobs the key may have; null: the gateway's default. */
  concurrency: number | null;
  /** What a plain job of the key does when its connection leaves; null: the gateway's default. */
  on_disconnect: 'cancel' | 'continue' | null;
}
