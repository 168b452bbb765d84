-- What of the operator's own accounts at vendors (files, vector stores, containers, …) a key may name: a JSON list of ids, of
-- which one that ends in a star stands for all that begin so. Null: nothing.
ALTER TABLE api_keys ADD COLUMN vendor_ids TEXT;
