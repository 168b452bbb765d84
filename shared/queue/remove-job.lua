-- Removes a job that waits with a priority, of low or high priority, or parked. Preceded by keys-in-line.lua, lines.lua, flex-lane.lua and high-lane.lua.
-- KEYS[1] the job (hash)   KEYS[2] prioritized (sorted set)
-- ARGV[1] its id in the queue   ARGV[2] start of the queue's keys   ARGV[3] start of the jobs' keys
-- ARGV[4] '1' if its caller has given it up, else '0'
-- Returns 1, or 0 if it does not wait with a priority.
local key, id, root, jobs = KEYS[1], ARGV[1], ARGV[2], ARGV[3]
local time = redis.call('TIME')
local givenUpAt = ARGV[4] == '1' and time[1] * 1000 + math.floor(time[2] / 1000)
local account, route, lane, high, apiKey = unpack(redis.call('HMGET', key, 'account', 'parked', 'lane', 'high', 'key'))
-- Takes it out of its account's line. A worker of the release before parks one of high priority among the others.
local function leave(root, parked)
  if high then openHighLane(root, jobs, 1, parked).leave(high, id, givenUpAt, apiKey) end
  if account then openLines(root, jobs, parked).leave(account, id, givenUpAt, apiKey) end
end
if lane then
  if not openFlexLane(root, jobs).remove(account, id, apiKey) then return 0 end
elseif redis.call('ZREM', KEYS[2], id) == 1 then
  leave(root)
else
  if not route then return 0 end
  root = root .. 'parked:' .. route .. ':'
  local parked = root .. 'prioritized'
  if redis.call('ZREM', parked, id) == 0 then return 0 end
  redis.call('ZREM', root .. 'low', id)
  leave(root, parked)
end
redis.call('DEL', key)
return 1
