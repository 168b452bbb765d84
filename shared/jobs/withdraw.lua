-- Withdraws an attempt that waits for its vendor, so that another worker may begin the job once there is capacity.
-- Loaded after lease.lua.
-- KEYS[1] job state (hash)   ARGV[1] attempt   ARGV[2] '1' if it has called no vendor, else '0'
-- Returns: withdrawn; fenced; ended; gone. A repeat of the call changes nothing.
local state = redis.call('HMGET', KEYS[1], 'attempt', 'terminal', 'lease', 'deadline', 'silent')
if not state[4] then return 'gone' end
if state[2] then return 'ended' end
if state[1] ~= ARGV[1] then return 'fenced' end
if state[3] == '0' then return 'withdrawn' end
-- The attempt stays raised, which fences this worker off; it does not count as a failed one, and its vendor has nothing to undo.
redis.call('HSET', KEYS[1], 'lease', 0)
endSilence(KEYS[1], state[5])
redis.call('HDEL', KEYS[1], 'sent')
redis.call('HINCRBY', KEYS[1], 'released', 1)
if ARGV[2] == '1' then
  redis.call('HDEL', KEYS[1], 'began')
  redis.call('HINCRBY', KEYS[1], 'withdrawn', 1)
end
return 'withdrawn'
