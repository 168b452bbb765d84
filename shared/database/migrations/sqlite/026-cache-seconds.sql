-- How old a cached answer to a key's requests may be, in seconds, and how long their answers are cached (X-Sluice-Cache).
-- Null: only those that ask for it are cached.
ALTER TABLE api_keys ADD COLUMN cache_seconds INTEGER;
