ALTER TABLE api_keys ADD COLUMN unsupported_parameters TEXT CHECK (unsupported_parameters IN ('refuse', 'drop'));
