-- The same sums as in usage_hours by day (of UTC), account and key alone: what operators ask for by accounts or by keys is of
-- every account, and of those with little use the hours have as many rows as there are jobs.
CREATE TABLE usage_days (
  day_start INTEGER NOT NULL,
  account_id TEXT NOT NULL,
  api_key_id TEXT NOT NULL,
  requests INTEGER NOT NULL,
  failed INTEGER NOT NULL,
  cancelled INTEGER NOT NULL,
  input_tokens INTEGER NOT NULL,
  output_tokens INTEGER NOT NULL,
  cost INTEGER NOT NULL,
  milliseconds INTEGER NOT NULL,
  first_milliseconds INTEGER NOT NULL,
  first_count INTEGER NOT NULL,
  PRIMARY KEY (day_start, account_id, api_key_id)
) STRICT, WITHOUT ROWID;

INSERT INTO usage_days
SELECT hour_start - hour_start % 86400000, account_id, api_key_id, sum(requests), sum(failed), sum(cancelled),
  sum(input_tokens), sum(output_tokens), sum(cost), sum(milliseconds), sum(first_milliseconds), sum(first_count)
FROM usage_hours
WHERE account_id <> ''
GROUP BY 1, 2, 3;
