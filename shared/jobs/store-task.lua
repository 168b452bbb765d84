-- Stores the task that a vendor has started for a job: from then on the job is polled, never rerun.
-- KEYS[1] job state (hash)   ARGV[1] attempt   ARGV[2] the task; see vendor-task.ts
-- Returns as append does: ok; fenced; ended; gone. A repeat of the call writes the same again.
local state = redis.call('HMGET', KEYS[1], 'deadline', 'terminal', 'attempt')
if not state[1] then return 'gone' end
if state[2] then return 'ended' end
if state[3] ~= ARGV[1] then return 'fenced' end
redis.call('HSET', KEYS[1], 'task', ARGV[2])
return 'ok'
