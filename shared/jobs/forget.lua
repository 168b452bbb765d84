-- Marks a job's resource as deleted and drops its answer. The state stays for settlement and record.
-- KEYS[1] job state (hash)   KEYS[2] answer log (stream)
-- ARGV[1] maximum remaining lifetime of the state, in ms
-- ARGV[2] the same for the log of an interrupted answer: its worker still counts that output
-- Returns 1; 2 if its worker still counts what was read and said; 0 if there is no state.
local state = redis.call('HMGET', KEYS[1], 'readers', 'terminal', 'usage', 'cost', 'settled')
if not state[1] then return 0 end
local isCounted = state[2] == 'completed' or (state[3] or '') ~= '' or (state[4] or '') ~= '' or state[5]
if isCounted then redis.call('UNLINK', KEYS[2]) else redis.call('PEXPIRE', KEYS[2], ARGV[2]) end
redis.call('HDEL', KEYS[1], 'request')
redis.call('HSET', KEYS[1], 'deleted', 1)
if redis.call('PTTL', KEYS[1]) > tonumber(ARGV[1]) then redis.call('PEXPIRE', KEYS[1], ARGV[1]) end
return isCounted and 1 or 2
