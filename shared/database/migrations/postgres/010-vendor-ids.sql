ALTER TABLE api_keys ADD COLUMN vendor_ids TEXT;
