-- Removes a job that no worker has claimed, wherever it waits. Preceded by keys-in-line.lua, lines.lua, flex-lane.lua and high-lane.lua.
-- KEYS[1] the job (hash)   KEYS[2] prioritized (sorted set)   KEYS[3] the lock of its claim   KEYS[4] delayed (sorted set)
-- KEYS[5] wait (list)   KEYS[6] active (list)
-- ARGV[1] its id in the queue   ARGV[2] start of the queue's keys   ARGV[3] start of the jobs' keys
-- ARGV[4] '1' if its caller has given it up, else '0'
-- Returns 1, or 0 if it is claimed or not in the queue.
local key, id, root, jobs = KEYS[1], ARGV[1], ARGV[2], ARGV[3]
local time = redis.call('TIME')
local givenUpAt = ARGV[4] == '1' and time[1] * 1000 + math.floor(time[2] / 1000)
local account, route, lane, high, apiKey = unpack(redis.call('HMGET', key, 'account', 'parked', 'lane', 'high', 'key'))
-- Takes it out of its account's line.
local function leave(root, parked)
  if high then
    openHighLane(root, jobs, 1, parked).leave(high, id, givenUpAt, apiKey)
  elseif account then
    openLines(root, jobs, parked).leave(account, id, givenUpAt, apiKey)
  end
end
local function removeWithPriority()
  if lane then return openFlexLane(root, jobs).remove(account, id, apiKey) end
  if redis.call('ZREM', KEYS[2], id) == 1 then
    leave(root)
    return true
  end
  if not route then return false end
  local parked = root .. 'parked:' .. route .. ':'
  if redis.call('ZREM', parked .. 'prioritized', id) == 0 then return false end
  redis.call('ZREM', parked .. 'low', id)
  leave(parked, parked .. 'prioritized')
  return true
end
-- One in `active` without a lock is of a worker that died.
local function removeOther()
  if redis.call('EXISTS', KEYS[3]) == 1 then return false end
  if redis.call('ZREM', KEYS[4], id) == 1 then return true end
  return redis.call('LREM', KEYS[5], 1, id) == 1 or redis.call('LREM', KEYS[6], 1, id) == 1
end
if not removeWithPriority() then
  if not removeOther() then return 0 end
  -- It is in its line still if the worker that claimed it died before that was noted.
  if not lane then leave(root) end
end
redis.call('DEL', key)
return 1
