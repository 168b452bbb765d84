CREATE TABLE users (
  id TEXT COLLATE "C" PRIMARY KEY,
  name TEXT NOT NULL,
  email TEXT COLLATE "C" NOT NULL UNIQUE,
  email_verified BIGINT NOT NULL,
  image TEXT,
  created_at TEXT COLLATE "C" NOT NULL,
  updated_at TEXT COLLATE "C" NOT NULL,
  role TEXT COLLATE "C" NOT NULL CHECK (role IN ('user', 'operator')),
  account_id TEXT COLLATE "C" NOT NULL
);

CREATE INDEX users_by_account ON users (account_id);

CREATE TABLE sessions (
  id TEXT COLLATE "C" PRIMARY KEY,
  user_id TEXT COLLATE "C" NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  token TEXT COLLATE "C" NOT NULL UNIQUE,
  expires_at TEXT COLLATE "C" NOT NULL,
  ip_address TEXT,
  user_agent TEXT,
  created_at TEXT COLLATE "C" NOT NULL,
  updated_at TEXT COLLATE "C" NOT NULL
);

CREATE INDEX sessions_by_user ON sessions (user_id);
CREATE INDEX sessions_by_expiry ON sessions (expires_at);

CREATE TABLE user_accounts (
  id TEXT COLLATE "C" PRIMARY KEY,
  user_id TEXT COLLATE "C" NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  provider_id TEXT COLLATE "C" NOT NULL,
  provider_account_id TEXT COLLATE "C" NOT NULL,
  password TEXT,
  access_token TEXT,
  refresh_token TEXT,
  id_token TEXT,
  access_token_expires_at TEXT COLLATE "C",
  refresh_token_expires_at TEXT COLLATE "C",
  scope TEXT,
  created_at TEXT COLLATE "C" NOT NULL,
  updated_at TEXT COLLATE "C" NOT NULL,
  UNIQUE (provider_id, provider_account_id)
);

CREATE INDEX user_accounts_by_user ON user_accounts (user_id);

CREATE TABLE verifications (
  id TEXT COLLATE "C" PRIMARY KEY,
  identifier TEXT COLLATE "C" NOT NULL,
  value TEXT NOT NULL,
  expires_at TEXT COLLATE "C" NOT NULL,
  created_at TEXT COLLATE "C" NOT NULL,
  updated_at TEXT COLLATE "C" NOT NULL
);

CREATE INDEX verifications_by_identifier ON verifications (identifier);
CREATE INDEX verifications_by_expiry ON verifications (expires_at);
