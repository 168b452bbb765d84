-- The usage ledger: a row per job, kept for good. `outcome` is null while a job that was recorded before it was accepted
-- has not ended. Ids sort by time, so that rows are appended. No reference to `accounts`: a record outlives its account.
CREATE TABLE jobs (
  id TEXT PRIMARY KEY NOT NULL,
  account_id TEXT NOT NULL,
  api_key_id TEXT NOT NULL,
  endpoint TEXT NOT NULL,
  capability TEXT NOT NULL,
  model TEXT NOT NULL,
  vendor TEXT NOT NULL,
  stream INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  began_at INTEGER,
  ended_at INTEGER,
  outcome TEXT CHECK (outcome IN ('completed', 'failed', 'cancelled')),
  error_code TEXT,
  attempts INTEGER NOT NULL,
  input_tokens INTEGER,
  output_tokens INTEGER,
  usage TEXT,
  retention_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX jobs_by_account ON jobs (account_id, id);
CREATE INDEX unfinished_jobs ON jobs (id) WHERE outcome IS NULL;

-- Request and answer of asynchronous and keyed jobs, for their retention time. An answer is the fewest frames that show it
-- again, as a batch of the answer log; a large one is a blob, by its id.
CREATE TABLE job_bodies (
  job_id TEXT PRIMARY KEY NOT NULL,
  view_options TEXT NOT NULL,
  request TEXT,
  answer TEXT,
  answer_blob TEXT,
  expires_at INTEGER NOT NULL
) STRICT;

CREATE INDEX job_bodies_by_expiry ON job_bodies (expires_at);
