-- Times are milliseconds since 1970. The first account exists from the beginning: keys need an owner.
CREATE TABLE accounts (
  id TEXT PRIMARY KEY NOT NULL,
  name TEXT NOT NULL,
  created_at INTEGER NOT NULL
) STRICT;

INSERT INTO accounts (id, name, created_at) VALUES ('default', 'default', unixepoch() * 1000);

CREATE TABLE api_keys (
  id TEXT PRIMARY KEY NOT NULL,
  account_id TEXT NOT NULL REFERENCES accounts (id),
  name TEXT NOT NULL,
  hash TEXT NOT NULL UNIQUE,
  prefix TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  revoked_at INTEGER,
  concurrency INTEGER CHECK (concurrency > 0),
  on_disconnect TEXT CHECK (on_disconnect IN ('cancel', 'continue'))
) STRICT;

CREATE INDEX api_keys_by_account ON api_keys (account_id, created_at);
