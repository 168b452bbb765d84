-- What the vendor itself says that a job has cost there, in nano-dollars; null where it says nothing.
ALTER TABLE jobs ADD COLUMN vendor_cost INTEGER;
