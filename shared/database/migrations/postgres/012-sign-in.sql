DELETE FROM sessions;
DELETE FROM secrets WHERE name = 'sessions';

ALTER TABLE users ADD COLUMN two_factor_enabled BIGINT NOT NULL DEFAULT 0;

CREATE TABLE two_factors (
  id TEXT COLLATE "C" PRIMARY KEY,
  user_id TEXT COLLATE "C" NOT NULL UNIQUE REFERENCES users (id) ON DELETE CASCADE,
  secret TEXT NOT NULL,
  backup_codes TEXT NOT NULL,
  verified BIGINT NOT NULL,
  failed_verification_count BIGINT NOT NULL DEFAULT 0,
  locked_until TEXT COLLATE "C"
);
