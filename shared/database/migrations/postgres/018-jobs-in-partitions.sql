-- Jobs in partitions by id, which sorts by time: deleting a day is dropping a table. The key stays the id alone, so the release
-- before writes as it did. No row is read or moved: the bound says that all fit the first partition. Further ones are made by the
-- ledger, see api/ledger/retention; rows for which there is none go to the last one.
ALTER TABLE jobs RENAME TO jobs_first;
ALTER INDEX jobs_pkey RENAME TO jobs_first_pkey;
ALTER INDEX jobs_by_account RENAME TO jobs_first_by_account;
ALTER INDEX unfinished_jobs RENAME TO jobs_first_unfinished;
ALTER INDEX resources RENAME TO jobs_first_resources;
ALTER INDEX ended_badly RENAME TO jobs_first_ended_badly;

CREATE TABLE jobs (LIKE jobs_first INCLUDING DEFAULTS INCLUDING CONSTRAINTS) PARTITION BY RANGE (id);
ALTER TABLE jobs DROP CONSTRAINT jobs_bound;
ALTER TABLE jobs ADD PRIMARY KEY (id);
CREATE INDEX jobs_by_account ON jobs (account_id, id)
  INCLUDE (created_at, api_key_id, model, endpoint, outcome, input_tokens, output_tokens, cost);
CREATE INDEX unfinished_jobs ON jobs (id) WHERE outcome IS NULL;
CREATE INDEX resources ON jobs (account_id, endpoint, id) WHERE retention_ms > 0;
CREATE INDEX ended_badly ON jobs (id) INCLUDE (account_id, outcome, model, api_key_id, endpoint)
  WHERE outcome IN ('failed', 'cancelled');

DO $$
DECLARE
  bound TEXT := (SELECT substring(pg_get_constraintdef(oid) FROM '''([^'']+)''') FROM pg_constraint
    WHERE conname = 'jobs_bound' AND conrelid = 'jobs_first'::regclass);
  today TEXT := lpad(to_hex(floor(extract(epoch FROM clock_timestamp()) / 86400)::bigint * 86400000), 12, '0');
BEGIN
  -- A new database has no rows that would need a partition for a month.
  IF NOT EXISTS (SELECT FROM jobs_first) THEN bound := today; END IF;
  EXECUTE format('ALTER TABLE jobs ATTACH PARTITION jobs_first FOR VALUES FROM (MINVALUE) TO (%L)', bound);
END $$;
ALTER TABLE jobs_first DROP CONSTRAINT jobs_bound;

CREATE TABLE jobs_rest PARTITION OF jobs DEFAULT WITH (
  autovacuum_vacuum_insert_scale_factor = 0,
  autovacuum_vacuum_insert_threshold = 100000
);
