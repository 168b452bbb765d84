-- Money is nano-dollars. `cost` is what the job was charged, null where nothing was; `metadata` the request's own tags, a
-- JSON object of strings; `served_model` the stand-in that answered; `first_at` when the first piece of the answer came.
ALTER TABLE jobs ADD COLUMN cost INTEGER;
ALTER TABLE jobs ADD COLUMN metadata TEXT;
ALTER TABLE jobs ADD COLUMN served_model TEXT;
ALTER TABLE jobs ADD COLUMN first_at INTEGER;

-- The few that did not complete: a console asks for them, and should not have to look through all the others.
CREATE INDEX ended_badly ON jobs (id, account_id, outcome, model, api_key_id, endpoint)
  WHERE outcome IN ('failed', 'cancelled');

-- An unlimited account needs no credit. The first account is one: a gateway of one's own asks nobody for money.
ALTER TABLE accounts ADD COLUMN is_unlimited INTEGER NOT NULL DEFAULT 0 CHECK (is_unlimited IN (0, 1));
ALTER TABLE accounts ADD COLUMN suspended_at INTEGER;
UPDATE accounts SET is_unlimited = 1 WHERE id = 'default';

-- What was put on an account, or taken off it (a negative amount), and by whom.
CREATE TABLE credits (
  id TEXT PRIMARY KEY NOT NULL,
  account_id TEXT NOT NULL REFERENCES accounts (id),
  amount INTEGER NOT NULL,
  note TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  created_by TEXT NOT NULL
) STRICT;

CREATE INDEX credits_by_account ON credits (account_id, id);

-- Sums of the ended jobs that were made in one hour: usage is asked for by span of time, and a year of jobs is too many to
-- add up each time. Written together with the jobs' ends, so the two never differ. Each job counts twice: for its account
-- and key, and, where both are '', among all: of many accounts with little use there would be as many rows as jobs.
CREATE TABLE usage_hours (
  account_id TEXT NOT NULL,
  hour_start INTEGER NOT NULL,
  api_key_id TEXT NOT NULL,
  model TEXT NOT NULL,
  endpoint TEXT NOT NULL,
  capability TEXT NOT NULL,
  vendor TEXT NOT NULL,
  requests INTEGER NOT NULL,
  failed INTEGER NOT NULL,
  cancelled INTEGER NOT NULL,
  input_tokens INTEGER NOT NULL,
  output_tokens INTEGER NOT NULL,
  cost INTEGER NOT NULL,
  milliseconds INTEGER NOT NULL,
  first_milliseconds INTEGER NOT NULL,
  first_count INTEGER NOT NULL,
  PRIMARY KEY (account_id, hour_start, api_key_id, model, endpoint, capability, vendor)
) STRICT, WITHOUT ROWID;

CREATE INDEX usage_hours_by_hour ON usage_hours (hour_start);

INSERT INTO usage_hours
SELECT account_id, created_at - created_at % 3600000, api_key_id, model, endpoint, capability, vendor,
  count(*), count(*) FILTER (WHERE outcome = 'failed'), count(*) FILTER (WHERE outcome = 'cancelled'),
  coalesce(sum(input_tokens), 0), coalesce(sum(output_tokens), 0), 0, coalesce(sum(max(ended_at - created_at, 0)), 0), 0, 0
FROM jobs WHERE outcome IS NOT NULL
GROUP BY 1, 2, 3, 4, 5, 6, 7;

INSERT INTO usage_hours
SELECT '', hour_start, '', model, endpoint, capability, vendor, sum(requests), sum(failed), sum(cancelled),
  sum(input_tokens), sum(output_tokens), sum(cost), sum(milliseconds), sum(first_milliseconds), sum(first_count)
FROM usage_hours
GROUP BY hour_start, model, endpoint, capability, vendor;
