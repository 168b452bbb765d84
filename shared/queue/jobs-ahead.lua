-- Returns how many jobs with a priority, or of low priority, are claimed before one of them, as far as is known; -1 if it is none that
-- waits. Preceded by keys-in-line.lua, lines.lua and flex-lane.lua.
-- KEYS[1] the job (hash)   KEYS[2] prioritized (sorted set)
-- ARGV[1] its id in the queue   ARGV[2] start of the queue's keys   ARGV[3] start of the jobs' keys
local account, lane = unpack(redis.call('HMGET', KEYS[1], 'account', 'lane'))
if not lane then return openLines(ARGV[2], ARGV[3]).ahead(account, ARGV[1]) or -1 end
local ahead = openFlexLane(ARGV[2], ARGV[3]).ahead(account, ARGV[1])
return ahead and ahead + redis.call('ZCARD', KEYS[2]) or -1
