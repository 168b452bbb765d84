-- Whether identical requests of a key that come at once share one job (X-Sluice-Single-Flight). 1: yes; null or 0: only if they ask for it.
ALTER TABLE api_keys ADD COLUMN single_flight BIGINT;
