-- Marks a job's resource as deleted and drops its answer. The state stays for settlement and record.
-- KEYS[1] job state (hash)   KEYS[2] answer log (stream)
-- ARGV[1] maximum remaining lifetime of the state, in ms
-- ARGV[2] the same for the log of an interrupted answer: its worker still counts that output
-- Returns 1, or 0 if there is no state.
local state = redis.call('HMGET', KEYS[1], 'readers', 'terminal', 'usage')
if not state[1] then return 0 end
local isInterrupted = state[2] and state[2] ~= 'completed' and (state[3] or '') == ''
if isInterrupted then redis.call('PEXPIRE', KEYS[2], ARGV[2]) else redis.call('UNLINK', KEYS[2]) end
redis.call('HDEL', KEYS[1], 'request')
redis.call('HSET', KEYS[1], 'deleted', 1)
if redis.call('PTTL', KEYS[1]) > tonumber(ARGV[1]) then redis.call('PEXPIRE', KEYS[1], ARGV[1]) end
return 1
