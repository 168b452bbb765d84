ALTER TABLE jobs ADD COLUMN error_details TEXT;
