-- Removes a job that waits with a priority, whose start tag its account's next jobs get. Preceded by lines.lua.
-- KEYS[1] the job (hash)   KEYS[2] prioritized (sorted set)
-- ARGV[1] its id in the queue   ARGV[2] start of the queue's keys   ARGV[3] start of the jobs' keys
-- ARGV[4] '1' if its caller has given it up, else '0'
-- Returns 1, or 0 if it does not wait with a priority.
local key, id = KEYS[1], ARGV[1]
if redis.call('ZREM', KEYS[2], id) == 0 then return 0 end
local account = redis.call('HGET', key, 'account')
redis.call('DEL', key)
local time = redis.call('TIME')
local givenUpAt = ARGV[4] == '1' and time[1] * 1000 + math.floor(time[2] / 1000)
if account then openLines(ARGV[2], ARGV[3]).leave(account, id, givenUpAt) end
return 1
