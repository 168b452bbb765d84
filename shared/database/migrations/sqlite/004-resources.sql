-- Resources (responses, videos): their requests are kept with their answers, a large one as a blob. A deleted one leaves a
-- row without bodies, so that a record that comes later does not bring them back; it goes with its expiry.
ALTER TABLE job_bodies ADD COLUMN request_blob TEXT;
ALTER TABLE job_bodies ADD COLUMN deleted_at INTEGER;

-- Listing an account's resources of one kind, newest first.
CREATE INDEX resources ON jobs (account_id, endpoint, id) WHERE retention_ms > 0;
