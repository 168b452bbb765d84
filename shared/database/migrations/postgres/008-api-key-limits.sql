ALTER TABLE api_keys ADD COLUMN kind TEXT COLLATE "C" NOT NULL DEFAULT 'standard'
  CHECK (kind IN ('standard', 'operator', 'console'));
ALTER TABLE api_keys ADD COLUMN revision BIGINT NOT NULL DEFAULT 1 CHECK (revision > 0);
ALTER TABLE api_keys ADD COLUMN expires_at BIGINT;
ALTER TABLE api_keys ADD COLUMN capabilities TEXT;
ALTER TABLE api_keys ADD COLUMN models TEXT;
ALTER TABLE api_keys ADD COLUMN rpm BIGINT CHECK (rpm > 0);
ALTER TABLE api_keys ADD COLUMN tpm BIGINT CHECK (tpm > 0);
ALTER TABLE api_keys ADD COLUMN model_limits TEXT;
ALTER TABLE api_keys ADD COLUMN budget BIGINT CHECK (budget >= 0);
ALTER TABLE api_keys ADD COLUMN budget_period TEXT COLLATE "C" CHECK (budget_period IN ('day', 'week', 'month', 'never'));
ALTER TABLE api_keys ADD COLUMN rotated_to TEXT COLLATE "C";
ALTER TABLE api_keys ADD COLUMN last_used_at BIGINT;

CREATE UNIQUE INDEX console_keys ON api_keys (account_id) WHERE kind = 'console';
