-- Requests that were answered by a cached answer (X-Sluice-Cache): they made no job, and cost nothing.
ALTER TABLE usage_days ADD COLUMN cache_hits BIGINT NOT NULL DEFAULT 0;
ALTER TABLE usage_hours ADD COLUMN cache_hits BIGINT NOT NULL DEFAULT 0;
