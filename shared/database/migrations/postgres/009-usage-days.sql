-- Rows of the current day change all the time: room in their pages keeps their new versions beside them.
CREATE TABLE usage_days (
  day_start BIGINT NOT NULL,
  account_id TEXT COLLATE "C" NOT NULL,
  api_key_id TEXT COLLATE "C" NOT NULL,
  requests BIGINT NOT NULL,
  failed BIGINT NOT NULL,
  cancelled BIGINT NOT NULL,
  input_tokens BIGINT NOT NULL,
  output_tokens BIGINT NOT NULL,
  cost BIGINT NOT NULL,
  milliseconds BIGINT NOT NULL,
  first_milliseconds BIGINT NOT NULL,
  first_count BIGINT NOT NULL,
  PRIMARY KEY (day_start, account_id, api_key_id)
) WITH (fillfactor = 80);

INSERT INTO usage_days
SELECT hour_start - hour_start % 86400000, account_id, api_key_id, sum(requests), sum(failed), sum(cancelled),
  sum(input_tokens), sum(output_tokens), sum(cost), sum(milliseconds), sum(first_milliseconds), sum(first_count)
FROM usage_hours
WHERE account_id <> ''
GROUP BY 1, 2, 3
ORDER BY 1, 2, 3;
