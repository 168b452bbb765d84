-- Whether an account's keys share its turns in a queue: 1, else 0.
ALTER TABLE accounts ADD COLUMN queue_by_key INTEGER NOT NULL DEFAULT 0 CHECK (queue_by_key IN (0, 1));
