-- Marks the resource that a job is as deleted, and drops what it has said. Its state stays for its settlement and record.
-- KEYS[1] job state (hash)   KEYS[2] answer log (stream)
-- ARGV[1] how long the state may stay at most, in ms
-- ARGV[2] how long the log of an answer that was cut may: its worker counts what it had said
-- Returns 1, or 0 where there is no state.
local state = redis.call('HMGET', KEYS[1], 'readers', 'terminal', 'usage')
if not state[1] then return 0 end
local isCut = state[2] and state[2] ~= 'completed' and (state[3] or '') == ''
if isCut then redis.call('PEXPIRE', KEYS[2], ARGV[2]) else redis.call('UNLINK', KEYS[2]) end
redis.call('HDEL', KEYS[1], 'request')
redis.call('HSET', KEYS[1], 'deleted', 1)
if redis.call('PTTL', KEYS[1]) > tonumber(ARGV[1]) then redis.call('PEXPIRE', KEYS[1], ARGV[1]) end
return 1
