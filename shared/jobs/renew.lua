-- Renews a worker's lease on a job while its vendor is silent, and returns whether the worker still owns the job.
-- KEYS[1] job state (hash)   ARGV[1] attempt   ARGV[2] lease in ms
-- Returns as append does: ok, fenced, ended, gone.
local state = redis.call('HMGET', KEYS[1], 'attempt', 'terminal')
if not state[1] then return 'gone' end
if state[2] then return 'ended' end
if state[1] ~= ARGV[1] then return 'fenced' end
local time = redis.call('TIME')
redis.call('HSET', KEYS[1], 'lease', time[1] * 1000 + math.floor(time[2] / 1000) + ARGV[2])
return 'ok'
