-- The next steps make the rows of today the first partition of a partitioned table: all ids below a bound a month ahead, by when
-- they are done. The bound is checked for new rows at once, and by the next step for the others, while the table is used.
DO $$
DECLARE
  bound TEXT := lpad(to_hex((floor(extract(epoch FROM clock_timestamp()) / 86400)::bigint + 31) * 86400000), 12, '0');
  newest TEXT := (SELECT max(id) FROM jobs);
BEGIN
  -- A process whose clock was far ahead.
  IF newest >= bound THEN bound := left(newest, 12) || 'g'; END IF;
  EXECUTE format('ALTER TABLE jobs ADD CONSTRAINT jobs_bound CHECK (id < %L) NOT VALID', bound);
END $$;
