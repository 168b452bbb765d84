ALTER TABLE job_bodies ADD COLUMN request_blob TEXT;
ALTER TABLE job_bodies ADD COLUMN deleted_at BIGINT;

CREATE INDEX resources ON jobs (account_id, endpoint, id) WHERE retention_ms > 0;
