-- Releases a job with no delta in its log, so that another worker may run it at once. Used while draining.
-- Loaded after lease.lua.
-- KEYS[1] job state (hash)   ARGV[1] attempt
-- Returns: released; kept (output is committed); fenced; ended; gone. A repeat of the call changes nothing.
local state = redis.call('HMGET', KEYS[1], 'attempt', 'terminal', 'delta', 'lease', 'silent')
if not state[1] then return 'gone' end
if state[2] then return 'ended' end
if state[1] ~= ARGV[1] then return 'fenced' end
if state[3] then return 'kept' end
if state[4] == '0' then return 'released' end
-- The attempt stays raised, which fences this worker off; it just does not count as a failed one.
redis.call('HSET', KEYS[1], 'lease', 0)
endSilence(KEYS[1], state[5])
redis.call('HINCRBY', KEYS[1], 'released', 1)
return 'released'
