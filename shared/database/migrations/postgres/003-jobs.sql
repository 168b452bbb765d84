-- Vacuuming early keeps the newest rows, which are asked for most, readable from an index alone.
CREATE TABLE jobs (
  id TEXT COLLATE "C" PRIMARY KEY,
  account_id TEXT COLLATE "C" NOT NULL,
  api_key_id TEXT COLLATE "C" NOT NULL,
  endpoint TEXT COLLATE "C" NOT NULL,
  capability TEXT COLLATE "C" NOT NULL,
  model TEXT COLLATE "C" NOT NULL,
  vendor TEXT COLLATE "C" NOT NULL,
  stream BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  began_at BIGINT,
  ended_at BIGINT,
  outcome TEXT COLLATE "C" CHECK (outcome IN ('completed', 'failed', 'cancelled')),
  error_code TEXT COLLATE "C",
  attempts BIGINT NOT NULL,
  input_tokens BIGINT,
  output_tokens BIGINT,
  usage TEXT,
  retention_ms BIGINT NOT NULL
) WITH (
  autovacuum_vacuum_insert_scale_factor = 0,
  autovacuum_vacuum_insert_threshold = 100000
);

-- An account's newest jobs, and, read from the index alone, what it has used in a span of time: ids sort by time.
CREATE INDEX jobs_by_account ON jobs (account_id, id)
  INCLUDE (created_at, api_key_id, model, endpoint, outcome, input_tokens, output_tokens);
CREATE INDEX unfinished_jobs ON jobs (id) WHERE outcome IS NULL;

CREATE TABLE job_bodies (
  job_id TEXT COLLATE "C" PRIMARY KEY,
  view_options TEXT NOT NULL,
  request TEXT,
  answer TEXT,
  answer_blob TEXT,
  expires_at BIGINT NOT NULL
);

CREATE INDEX job_bodies_by_expiry ON job_bodies (expires_at);
