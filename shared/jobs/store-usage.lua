-- Stores an ended job's usage if its end did not contain it: readers see it, and the sweeper settles by it if the worker dies
-- before settling. Usage recorded at the end is not overwritten.
-- KEYS[1] job state (hash)   ARGV[1] usage as JSON   ARGV[2] its cost in nano-dollars, or '' if unknown
-- ARGV[3] what its vendor's prompt cache saved, in nano-dollars, or '' for nothing
-- Returns 1, or 0 if there is no state, no end, or already a usage.
local state = redis.call('HMGET', KEYS[1], 'terminal', 'usage')
if not state[1] or (state[2] and state[2] ~= '') then return 0 end
redis.call('HSET', KEYS[1], 'usage', ARGV[1], 'cost', ARGV[2])
if ARGV[3] ~= '' then redis.call('HSET', KEYS[1], 'saved', ARGV[3]) end
return 1
