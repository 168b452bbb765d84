-- Outside a transaction: it reads the whole table, which is written to meanwhile.
ALTER TABLE jobs VALIDATE CONSTRAINT jobs_bound;
