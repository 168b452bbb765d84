-- Partitions are for Postgres: here the table stays one.
SELECT 1;
