-- An account's share of a queue beside others that wait, against theirs.
ALTER TABLE accounts ADD COLUMN queue_weight BIGINT NOT NULL DEFAULT 1 CHECK (queue_weight BETWEEN 1 AND 100);
