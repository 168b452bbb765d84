-- What a key may do, for how long and how much. `revision` rises with every change: Redis has it too, and an api process
-- that remembers another one reads the key anew. Null is no limit. Lists and `model_limits` are JSON; money is nano-dollars.
ALTER TABLE api_keys ADD COLUMN kind TEXT NOT NULL DEFAULT 'standard'
  CHECK (kind IN ('standard', 'operator', 'console'));
ALTER TABLE api_keys ADD COLUMN revision INTEGER NOT NULL DEFAULT 1 CHECK (revision > 0);
ALTER TABLE api_keys ADD COLUMN expires_at INTEGER;
ALTER TABLE api_keys ADD COLUMN capabilities TEXT;
ALTER TABLE api_keys ADD COLUMN models TEXT;
ALTER TABLE api_keys ADD COLUMN rpm INTEGER CHECK (rpm > 0);
ALTER TABLE api_keys ADD COLUMN tpm INTEGER CHECK (tpm > 0);
ALTER TABLE api_keys ADD COLUMN model_limits TEXT;
ALTER TABLE api_keys ADD COLUMN budget INTEGER CHECK (budget >= 0);
ALTER TABLE api_keys ADD COLUMN budget_period TEXT CHECK (budget_period IN ('day', 'week', 'month', 'never'));
ALTER TABLE api_keys ADD COLUMN rotated_to TEXT;
ALTER TABLE api_keys ADD COLUMN last_used_at INTEGER;

-- The playground's hidden key: one of each account.
CREATE UNIQUE INDEX console_keys ON api_keys (account_id) WHERE kind = 'console';
