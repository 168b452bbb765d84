-- Counts an attempt in a window of time that starts with the first one.
-- KEYS[1] the count   ARGV[1] length of the window in ms
-- Returns {attempts so far, ms until the window ends}.
local count = redis.call('INCR', KEYS[1])
if count == 1 then redis.call('PEXPIRE', KEYS[1], ARGV[1]) end
return {count, redis.call('PTTL', KEYS[1])}
