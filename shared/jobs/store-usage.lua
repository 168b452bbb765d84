-- Notes what an ended job took, where its end did not say: its reader is shown it, and the sweeper settles by it where the
-- worker dies before it has settled. What its end said stands.
-- KEYS[1] job state (hash)   ARGV[1] usage as JSON   ARGV[2] what it has cost in nano-dollars, or '' where nobody knows
-- Returns 1, or 0 where there is no state, no end, or a usage already.
local state = redis.call('HMGET', KEYS[1], 'terminal', 'usage')
if not state[1] or (state[2] and state[2] ~= '') then return 0 end
redis.call('HSET', KEYS[1], 'usage', ARGV[1], 'cost', ARGV[2])
return 1
