ALTER TABLE jobs ADD COLUMN cost BIGINT;
ALTER TABLE jobs ADD COLUMN metadata TEXT;
ALTER TABLE jobs ADD COLUMN served_model TEXT COLLATE "C";
ALTER TABLE jobs ADD COLUMN first_at BIGINT;

DROP INDEX jobs_by_account;
CREATE INDEX jobs_by_account ON jobs (account_id, id)
  INCLUDE (created_at, api_key_id, model, endpoint, outcome, input_tokens, output_tokens, cost);
CREATE INDEX ended_badly ON jobs (id) INCLUDE (account_id, outcome, model, api_key_id, endpoint)
  WHERE outcome IN ('failed', 'cancelled');

ALTER TABLE accounts ADD COLUMN is_unlimited BIGINT NOT NULL DEFAULT 0 CHECK (is_unlimited IN (0, 1));
ALTER TABLE accounts ADD COLUMN suspended_at BIGINT;
UPDATE accounts SET is_unlimited = 1 WHERE id = 'default';

CREATE TABLE credits (
  id TEXT COLLATE "C" PRIMARY KEY,
  account_id TEXT COLLATE "C" NOT NULL REFERENCES accounts (id),
  amount BIGINT NOT NULL,
  note TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  created_by TEXT COLLATE "C" NOT NULL
);

CREATE INDEX credits_by_account ON credits (account_id, id);

-- Rows of the current hour change all the time: room in their pages keeps their new versions beside them.
CREATE TABLE usage_hours (
  account_id TEXT COLLATE "C" NOT NULL,
  hour_start BIGINT NOT NULL,
  api_key_id TEXT COLLATE "C" NOT NULL,
  model TEXT COLLATE "C" NOT NULL,
  endpoint TEXT COLLATE "C" NOT NULL,
  capability TEXT COLLATE "C" NOT NULL,
  vendor TEXT COLLATE "C" NOT NULL,
  requests BIGINT NOT NULL,
  failed BIGINT NOT NULL,
  cancelled BIGINT NOT NULL,
  input_tokens BIGINT NOT NULL,
  output_tokens BIGINT NOT NULL,
  cost BIGINT NOT NULL,
  milliseconds BIGINT NOT NULL,
  first_milliseconds BIGINT NOT NULL,
  first_count BIGINT NOT NULL,
  PRIMARY KEY (account_id, hour_start, api_key_id, model, endpoint, capability, vendor)
) WITH (fillfactor = 80);

-- Rows come in the order of time. A B-tree would be taken also where the account is known, and read everybody's rows.
CREATE INDEX usage_hours_by_hour ON usage_hours USING brin (hour_start) WITH (pages_per_range = 16, autosummarize = on);

INSERT INTO usage_hours
SELECT account_id, created_at - created_at % 3600000, api_key_id, model, endpoint, capability, vendor,
  count(*), count(*) FILTER (WHERE outcome = 'failed'), count(*) FILTER (WHERE outcome = 'cancelled'),
  coalesce(sum(input_tokens), 0), coalesce(sum(output_tokens), 0), 0, coalesce(sum(greatest(ended_at - created_at, 0)), 0), 0, 0
FROM jobs WHERE outcome IS NOT NULL
GROUP BY 1, 2, 3, 4, 5, 6, 7
ORDER BY 2, 1;

INSERT INTO usage_hours
SELECT '', hour_start, '', model, endpoint, capability, vendor, sum(requests), sum(failed), sum(cancelled),
  sum(input_tokens), sum(output_tokens), sum(cost), sum(milliseconds), sum(first_milliseconds), sum(first_count)
FROM usage_hours
GROUP BY hour_start, model, endpoint, capability, vendor
ORDER BY hour_start;
