-- Who sets the breakpoints of Anthropic's prompt cache in a key's requests: `caller` or `automatic`. Null: the caller.
ALTER TABLE api_keys ADD COLUMN cache_breakpoints TEXT;
