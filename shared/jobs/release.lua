-- Gives a job back that has put no delta into its log, so that another worker may run it at once. Used while draining.
-- KEYS[1] job state (hash)   ARGV[1] attempt
-- Answers: released; kept (output is committed); fenced; ended; gone.
local state = redis.call('HMGET', KEYS[1], 'attempt', 'terminal', 'delta', 'releasedBy')
if not state[1] then return 'gone' end
if state[2] then return 'ended' end
if state[1] ~= ARGV[1] then return 'fenced' end
-- A repeat: the client library sent the call again after a broken connection. It must not count twice.
if state[4] == ARGV[1] then return 'released' end
if state[3] then return 'kept' end
-- The attempt stays raised, so this worker is fenced off from here on; it only does not count as a failed one.
redis.call('HSET', KEYS[1], 'lease', 0, 'releasedBy', ARGV[1])
redis.call('HINCRBY', KEYS[1], 'released', 1)
return 'released'
