import type { Outcome } from '../jobs/job-state.ts';

/** Row types of the database, named as its columns are. Times are milliseconds since 1970. */
export interface Tables {
  accounts: AccountsTable;
  api_keys: ApiKeysTable;
  secrets: SecretsTable;
  jobs: JobsTable;
  job_bodies: JobBodiesTable;
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
  /** What becomes of parameters that a model's vendor does not know; null: refused. */
  unsupported_parameters: 'refuse' | 'drop' | null;
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
  attempts: number;
  /** Tokens as the vendor counted them; null where it did not. */
  input_tokens: number | null;
  output_tokens: number | null;
  /** The vendor's usage as JSON text. */
  usage: string | null;
  /** How long the answer is kept, in ms; 0 for a plain job, whose bodies are not kept. */
  retention_ms: number;
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
