-- Why a job failed, as JSON: the message its caller was told, and the vendor's status; null where nothing is known.
ALTER TABLE jobs ADD COLUMN error_details TEXT;
