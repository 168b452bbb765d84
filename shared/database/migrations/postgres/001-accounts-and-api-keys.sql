-- As for SQLite, step by step with the same names, tables and columns. Ids compare byte by byte: they sort by time.
CREATE TABLE accounts (
  id TEXT COLLATE "C" PRIMARY KEY,
  name TEXT NOT NULL,
  created_at BIGINT NOT NULL
);

INSERT INTO accounts (id, name, created_at)
VALUES ('default', 'default', floor(extract(epoch FROM clock_timestamp()) * 1000));

CREATE TABLE api_keys (
  id TEXT COLLATE "C" PRIMARY KEY,
  account_id TEXT COLLATE "C" NOT NULL REFERENCES accounts (id),
  name TEXT NOT NULL,
  hash TEXT COLLATE "C" NOT NULL UNIQUE,
  prefix TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  revoked_at BIGINT,
  concurrency BIGINT CHECK (concurrency > 0),
  on_disconnect TEXT CHECK (on_disconnect IN ('cancel', 'continue'))
);

CREATE INDEX api_keys_by_account ON api_keys (account_id, created_at);
