-- Session tokens are kept hashed from here on: those that are there are readable, so their sessions end, and what signs their
-- cookies is made anew (see shared/database/secrets.ts).
DELETE FROM sessions;
DELETE FROM secrets WHERE name = 'sessions';

ALTER TABLE users ADD COLUMN two_factor_enabled INTEGER NOT NULL DEFAULT 0;

-- A second factor to sign in by: an authenticator's secret and the codes that stand in for it, both encrypted.
CREATE TABLE two_factors (
  id TEXT PRIMARY KEY NOT NULL,
  user_id TEXT NOT NULL UNIQUE REFERENCES users (id) ON DELETE CASCADE,
  secret TEXT NOT NULL,
  backup_codes TEXT NOT NULL,
  verified INTEGER NOT NULL,
  failed_verification_count INTEGER NOT NULL DEFAULT 0,
  locked_until TEXT
) STRICT;
