import type { Generated } from 'kysely';
import type { Outcome } from '../jobs/job-state.ts';

/** Row types of the database, named as its columns are. Times are milliseconds since 1970. */
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
}

/** Random bytes that all processes of a gateway share. */
interface SecretsTable {
  name: string;
  value: Uint8Array;
}

/** Who owns API keys, limits and usage. */
export interface AccountsTable {
  id: string;
  name: string;
  created_at: number;
  /** 1 where the account needs no credit, else 0. */
  is_unlimited: Generated<number>;
  /** When an operator suspended it; null: it is not. */
  suspended_at: Generated<number | null>;
}

/** What was put on an account, or taken off it. */
export interface CreditsTable {
  id: string;
  account_id: string;
  /** Nano-dollars; negative where it was taken off. */
  amount: number;
  note: string;
  created_at: number;
  /** The user or API key that did it. */
  created_by: string;
}

/** Who signs in to the console. better-auth writes this table and the next three: their times are ISO 8601 in UTC. */
export interface UsersTable {
  id: string;
  name: string;
  /** In lower case; unique. */
  email: string;
  /** 1 where an identity provider, or the operator's own setting, vouches for it, else 0. */
  email_verified: number;
  image: string | null;
  created_at: string;
  updated_at: string;
  role: 'user' | 'operator';
  /** The gateway account whose keys, usage and jobs the user sees. */
  account_id: string;
  /** 1 where a password alone does not sign in, else 0. */
  two_factor_enabled: Generated<number>;
  /** 1 where the user cannot sign in, else 0. */
  disabled: Generated<number>;
}

interface SessionsTable {
  id: string;
  user_id: string;
  /** SHA-256 of what the cookie holds, besides its signature. */
  token: string;
  expires_at: string;
  ip_address: string | null;
  user_agent: string | null;
  created_at: string;
  updated_at: string;
}

/** What a user may sign in by. */
interface UserAccountsTable {
  id: string;
  user_id: string;
  /** `credential` for a password, or `oidc`. */
  provider_id: string;
  /** Who the user is to that provider; the user's own id for a password. */
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

/** What was handed out to be shown again once. */
interface VerificationsTable {
  id: string;
  /** SHA-256 of what was handed out. */
  identifier: string;
  value: string;
  expires_at: string;
  created_at: string;
  updated_at: string;
}

/** An authenticator that a user signs in by, besides a password. */
interface TwoFactorsTable {
  id: string;
  user_id: string;
  /** Encrypted, as the backup codes are. */
  secret: string;
  backup_codes: string;
  /** 1 once a first code was right, else 0. */
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
  /** The key's first characters, by which people recognise it. */
  prefix: string;
  created_at: number;
  revoked_at: number | null;
  /** Unfinished jobs the key may have; null: the gateway's default. */
  concurrency: number | null;
  /** What a plain job of the key does when its connection leaves; null: the gateway's default. */
  on_disconnect: 'cancel' | 'continue' | null;
  /** What becomes of parameters that a model's vendor does not know; null: refused. */
  unsupported_parameters: 'refuse' | 'drop' | null;
  /** JSON list of ids of the operator's own accounts at vendors; null: none. */
  vendor_ids: string | null;
  /** `operator`: for /admin/v1 only; `console`: the playground's, one of an account, whose text nobody has. */
  kind: Generated<'standard' | 'operator' | 'console'>;
  /** Rises with every change, from 1 on. */
  revision: Generated<number>;
  expires_at: number | null;
  /** JSON list of capabilities; null: all. */
  capabilities: string | null;
  /** JSON list of model ids, each of which may end in a star; null: all. */
  models: string | null;
  /** Requests in a minute; null: no limit. */
  rpm: number | null;
  /** Tokens in a minute; null: no limit. */
  tpm: number | null;
  /** JSON `{model: {rpm, tpm}}`; null: none. */
  model_limits: string | null;
  /** Nano-dollars that it may spend in a period; null: no limit. */
  budget: number | null;
  /** Null without a budget. */
  budget_period: 'day' | 'week' | 'month' | 'never' | null;
  /** Id of the key that took its place. */
  rotated_to: string | null;
  /** To the minute, and not at all while the database is down. */
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
  /** '' where no vendor was called, or where whoever ended the job does not know it. */
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
  /** All tokens that the vendor counted, also those that it counts beside its sums; null where it counts none. */
  input_tokens: number | null;
  output_tokens: number | null;
  /** The vendor's usage as JSON text. */
  usage: string | null;
  /** How long the answer is kept, in ms; 0 for a plain job, whose bodies are not kept. */
  retention_ms: number;
  /** What it was charged, in nano-dollars; null where nothing was, or it has not ended. */
  cost: number | null;
  /** What its vendor says that it has cost there, in nano-dollars; null where it says nothing that can be true. */
  vendor_cost: number | null;
  /** The request's tags: a JSON object of strings. */
  metadata: string | null;
  /** The model that answered in the place of the one that was asked for. */
  served_model: string | null;
  /** When the first piece of the answer came. */
  first_at: number | null;
}

/**
 * Sums of the ended jobs that were made in one hour, by all that usage is asked by. Each job is in two rows: that of its
 * account and key, and that of all, where both are ''.
 */
export interface UsageHoursTable extends UsageSumColumns {
  account_id: string;
  /** Milliseconds since 1970 at the beginning of the hour, in UTC. */
  hour_start: number;
  api_key_id: string;
  model: string;
  endpoint: string;
  capability: string;
  vendor: string;
}

/** The same sums by a day of UTC, account and key alone. */
export interface UsageDaysTable extends UsageSumColumns {
  /** Milliseconds since 1970 at the beginning of the day, in UTC. */
  day_start: number;
  account_id: string;
  api_key_id: string;
}

/** What is summed of ended jobs. */
interface UsageSumColumns {
  requests: number;
  failed: number;
  cancelled: number;
  input_tokens: number;
  output_tokens: number;
  /** Nano-dollars. */
  cost: number;
  /** From the making of each job to its end, together. */
  milliseconds: number;
  /** The same to the first piece of the answer, and of how many jobs. */
  first_milliseconds: number;
  first_count: number;
}

/** Request and answer of an asynchronous or keyed job, or of a resource. */
export interface JobBodiesTable {
  job_id: string;
  /** What the endpoint's view needs, JSON. */
  view_options: string;
  /** The vendor-neutral request as JSON text; null where it is in a blob, or was too large or held media. */
  request: string | null;
  /** Id of the blob that holds the request of a resource, where it is too large for the row. */
  request_blob: string | null;
  /** Frames that show the answer again, as a batch (see shared/jobs/frames.ts); null before the end, or in a blob. */
  answer: string | null;
  /** Id of the blob that holds such a batch, where it is too large for the row. */
  answer_blob: string | null;
  expires_at: number;
  /** When its owner deleted the resource. */
  deleted_at: number | null;
}
