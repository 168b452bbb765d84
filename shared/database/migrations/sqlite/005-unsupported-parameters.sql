-- What becomes of a request's parameters that its model's vendor does not know: refused with a 400, or dropped and named.
ALTER TABLE api_keys ADD COLUMN unsupported_parameters TEXT CHECK (unsupported_parameters IN ('refuse', 'drop'));
