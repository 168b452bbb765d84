-- The highest priority of an account's requests, which an operator sets: `normal` or `high`.
ALTER TABLE accounts ADD COLUMN max_priority TEXT NOT NULL DEFAULT 'normal' CHECK (max_priority IN ('normal', 'high'));
-- The priority of a key's requests that choose none, and the highest that they may choose: `low`, `normal` or `high`. Null: normal.
ALTER TABLE api_keys ADD COLUMN priority TEXT;
ALTER TABLE api_keys ADD COLUMN max_priority TEXT;
