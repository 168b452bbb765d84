-- What vendors' prompt caches saved: input tokens served from them, and how much more (nano-dollars) these would have cost at the plain
-- price of input. Null in jobs of the release before; it leaves the sums as they are.
ALTER TABLE jobs ADD COLUMN cached_tokens BIGINT;
ALTER TABLE jobs ADD COLUMN saved BIGINT;
ALTER TABLE usage_days ADD COLUMN cached_tokens BIGINT NOT NULL DEFAULT 0;
ALTER TABLE usage_days ADD COLUMN saved BIGINT NOT NULL DEFAULT 0;
ALTER TABLE usage_hours ADD COLUMN cached_tokens BIGINT NOT NULL DEFAULT 0;
ALTER TABLE usage_hours ADD COLUMN saved BIGINT NOT NULL DEFAULT 0;
