import type { Generated } from 'kysely';
import type { Outcome } from '../jobs/job-state.ts';

/** Row types of the database, with the names of its columns. Times are milliseconds since 1970. */
export interface Tables {
  accounts: AccountsTable;
  api_keys: ApiKeysTable;
  secrets: SecretsTable;
  jobs: JobsTable;
  job_bodies: JobBodiesTable;
  usage_hours: UsageHoursTable;
  usage_days: UsageDaysTable;
  credits: CreditsTable;
  users: UsersTable;
  sessions: SessionsTable;
  user_accounts: UserAccountsTable;
  verifications: VerificationsTable;
  two_factors: TwoFactorsTable;
  named_operators: NamedOperatorsTable;
}

/** Random bytes shared by all processes of a gateway. */
interface SecretsTable {
  name: string;
  value: Uint8Array;
}

/** An address of SLUICE_ADMIN_EMAIL that was made an operator. */
interface NamedOperatorsTable {
  /** In lower case. */
  email: string;
  made_at: number;
}

/** The owner of API keys, limits and usage. */
export interface AccountsTable {
  id: string;
  name: string;
  created_at: number;
  /** 1 if the account needs no credit, else 0. */
  is_unlimited: Generated<number>;
  /** When an operator suspended it; null if it is not. */
  suspended_at: Generated<number | null>;
  queue_weight: Generated<number>;
  queue_by_key: Generated<number>;
  /** The highest priority of its requests. */
  max_priority: Generated<'normal' | 'high'>;
}

/** Credit added to or removed from an account. */
export interface CreditsTable {
  id: string;
  account_id: string;
  /** Nano-dollars; negative if removed. */
  amount: number;
  note: string;
  created_at: number;
  /** The user or API key that made the change. */
  created_by: string;
}

/** A user of the console. better-auth writes this table and the next three: their times are ISO 8601 in UTC. */
export interface UsersTable {
  id: string;
  name: string;
  /** In lower case; unique. */
  email: string;
  /** 1 if an identity provider, or the operator's own setting, vouches for it, else 0. */
  email_verified: number;
  image: string | null;
  created_at: string;
  updated_at: string;
  role: 'user' | 'operator';
  /** The gateway account whose keys, usage and jobs the user sees. */
  account_id: string;
  /** 1 if a password alone does not suffice to sign in, else 0. */
  two_factor_enabled: Generated<number>;
  /** 1 if the user cannot sign in, else 0. */
  disabled: Generated<number>;
}

interface SessionsTable {
  id: string;
  user_id: string;
  /** SHA-256 of the cookie's value without its signature. */
  token: string;
  expires_at: string;
  ip_address: string | null;
  user_agent: string | null;
  created_at: string;
  updated_at: string;
}

/** A user's means of signing in. */
interface UserAccountsTable {
  id: string;
  user_id: string;
  /** `credential` for a password, or `oidc`. */
  provider_id: string;
  /** The user's id at that provider; the user's own id for a password. */
  provider_account_id: string;
  /** The password's hash. */
  password: string | null;
  access_token: string | null;
  refresh_token: string | null;
  id_token: string | null;
  access_token_expires_at: string | null;
  refresh_token_expires_at: string | null;
  scope: string | null;
  created_at: string;
  updated_at: string;
}

/** One-time tokens and pending sign-ins. */
interface VerificationsTable {
  id: string;
  /** SHA-256 of the token. */
  identifier: string;
  value: string;
  expires_at: string;
  created_at: string;
  updated_at: string;
}

/** A user's authenticator, as a second factor. */
interface TwoFactorsTable {
  id: string;
  user_id: string;
  /** Encrypted, as the backup codes are. */
  secret: string;
  backup_codes: string;
  /** 1 after a first correct code, else 0. */
  verified: number;
  failed_verification_count: Generated<number>;
  locked_until: string | null;
}

/** An API key without its text, which is stored nowhere. */
export interface ApiKeysTable {
  id: string;
  account_id: string;
  name: string;
  /** SHA-256 of the whole key, hexadecimal; unique. */
  hash: string;
  /** The key's first characters, by which people recognize it. */
  prefix: string;
  created_at: number;
  revoked_at: number | null;
  /** Maximum number of unfinished jobs; null: the gateway's default. */
  concurrency: number | null;
  /** Effect of a closed connection on a plain job of the key; null: the gateway's default. */
  on_disconnect: 'cancel' | 'continue' | null;
  /** How to treat parameters that a model's vendor does not support; null: refused. */
  unsupported_parameters: 'refuse' | 'drop' | null;
  /** Who sets the breakpoints of Claude's prompt cache; null: the caller. */
  cache_breakpoints: 'caller' | 'automatic' | null;
  /** Of its requests that choose none; null: normal. */
  priority: 'low' | 'normal' | 'high' | null;
  /** The highest priority that they may choose; null: normal. */
  max_priority: 'low' | 'normal' | 'high' | null;
  /** 1: identical requests at once share one job; 0 and null: only if they ask for it. */
  single_flight: number | null;
  /** How old a cached answer may be, and how long answers are cached; null: only if requests ask for it. */
  cache_seconds: number | null;
  /** JSON list of ids in the operator's own vendor accounts; null: none. */
  vendor_ids: string | null;
  /** `operator`: for /admin/v1 only; `console`: an account's playground key, whose text is not kept. */
  kind: Generated<'standard' | 'operator' | 'console'>;
  /** Incremented by every change, starting at 1. */
  revision: Generated<number>;
  expires_at: number | null;
  /** JSON list of capabilities; null: all. */
  capabilities: string | null;
  /** JSON list of model ids, each of which may end in a star; null: all. */
  models: string | null;
  /** Requests per minute; null: no limit. */
  rpm: number | null;
  /** Tokens per minute; null: no limit. */
  tpm: number | null;
  /** JSON `{model: {rpm, tpm}}`; null: none. */
  model_limits: string | null;
  /** Nano-dollars that it may spend per period; null: no limit. */
  budget: number | null;
  /** Null without a budget. */
  budget_period: 'day' | 'week' | 'month' | 'never' | null;
  /** Id of the key that replaced it, and of the first of them: a trigger writes that. */
  rotated_to: string | null;
  budget_id: string | null;
  /** To the minute; not updated while the database is down. */
  last_used_at: number | null;
}

/** The usage ledger: one row per job. */
export interface JobsTable {
  /** The job's id: 32 hexadecimal digits, which sort by time. */
  id: string;
  account_id: string;
  api_key_id: string;
  endpoint: string;
  capability: string;
  /** The model as the caller named it. */
  model: string;
  /** '' if no vendor was called, or if the process that ended the job does not know it. */
  vendor: string;
  /** 1 for a streamed answer, else 0. */
  stream: number;
  created_at: number;
  began_at: number | null;
  ended_at: number | null;
  /** Null until the job has ended; then it never changes again. */
  outcome: Outcome | null;
  error_code: string | null;
  /** Why it failed, as JSON text, see `errorDetails`. */
  error_details: string | null;
  attempts: number;
  /** All tokens counted by the vendor, including those it counts in addition to its sums; null if it counts none. */
  input_tokens: number | null;
  output_tokens: number | null;
  /** The part of `input_tokens` that the vendor served from its prompt cache; null if it counts none. */
  cached_tokens: number | null;
  /** How much more (nano-dollars) those would have cost at the plain price of input; null if unknown. */
  saved: number | null;
  /** The vendor's usage as JSON text. */
  usage: string | null;
  /** How long the answer is kept, in ms; 0 for a plain job, whose bodies are not kept. */
  retention_ms: number;
  /** The amount charged, in nano-dollars; null if nothing was, or the job has not ended. */
  cost: number | null;
  /** The cost reported by the vendor, in nano-dollars; null if missing or impossible. */
  vendor_cost: number | null;
  /** The request's tags: a JSON object of strings. */
  metadata: string | null;
  /** The model that replaced the requested one. */
  served_model: string | null;
  /** When the first piece of the answer arrived. */
  first_at: number | null;
}

/**
 * Sums of the ended jobs created in one hour, by all dimensions of usage queries. Each job counts in two rows: that of its
 * account and key, and that of all, where both are ''.
 */
export interface UsageHoursTable extends UsageSumColumns {
  account_id: string;
  /** Milliseconds since 1970 at the start of the hour, in UTC. */
  hour_start: number;
  api_key_id: string;
  model: string;
  endpoint: string;
  capability: string;
  vendor: string;
}

/** The same sums by UTC day, account and key alone. */
export interface UsageDaysTable extends UsageSumColumns {
  /** Milliseconds since 1970 at the start of the day, in UTC. */
  day_start: number;
  account_id: string;
  api_key_id: string;
}

/** Sums over ended jobs, and over requests that were answered by cached answers. */
interface UsageSumColumns {
  requests: number;
  failed: number;
  cancelled: number;
  input_tokens: number;
  output_tokens: number;
  /** The part of the input tokens that vendors served from their prompt caches. */
  cached_tokens: number;
  /** Nano-dollars. */
  cost: number;
  /** How much more the cached tokens would have cost at the plain price of input, in nano-dollars. */
  saved: number;
  /** Requests that cached answers were the reply to: they are no jobs, so `requests` does not count them. */
  cache_hits: number;
  /** Total time from each job's creation to its end. */
  milliseconds: number;
  /** Total time to the first piece of the answer, and the number of jobs it covers. */
  first_milliseconds: number;
  first_count: number;
}

/** Request and answer of an asynchronous or keyed job, or of a resource. */
export interface JobBodiesTable {
  job_id: string;
  /** Options of the endpoint's view, JSON. */
  view_options: string;
  /** The vendor-neutral request as JSON text; null if it is in a blob, or was too large or contained media. */
  request: string | null;
  /** Id of the blob with a resource's request, if it is too large for the row. */
  request_blob: string | null;
  /** Frames that reproduce the answer, as a batch (see shared/jobs/append.ts); null before the end, or if in a blob. */
  answer: string | null;
  /** Id of the blob with such a batch, if it is too large for the row. */
  answer_blob: string | null;
  expires_at: number;
  /** When its owner deleted the resource. */
  deleted_at: number | null;
}
