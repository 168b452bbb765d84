-- Releases parked jobs to the workers, as fast as their vendors' capacity comes: into the queue, as the next ones to be claimed.
-- One of low priority that has waited for spare capacity as long as it may first joins the other jobs of its account in the line.
-- Preceded by is-ahead.lua, keys-in-line.lua, lines.lua and high-lane.lua.
-- KEYS[1] routes with parked jobs (sorted set: when the next job may be released)   KEYS[2] wait (list)   KEYS[3] marker (sorted set)
-- ARGV[1] start of the keys of the routes   ARGV[2] start of the jobs' keys   ARGV[3] maximum number of jobs
-- ARGV[4] share of the releases that jobs of high priority may have while others wait
-- ARGV[5…] routes that have capacity now, each with the number of jobs to release at once
-- Returns for each route with parked jobs: its name, ms until its next job may be released, number of its parked jobs, ms of its
-- capacity that each takes on average.
local routes, wait, marker = KEYS[1], KEYS[2], KEYS[3]
local most = tonumber(ARGV[3])
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
-- Unreleased jobs of an earlier time are made up for, up to this much; longer, and the vendor has not had the capacity.
local makeUpMs = 1000
-- A little faster than capacity comes: what comes too early waits again, and an unused minute is lost.
local faster = 0.95
local function whole(number) return string.format('%.3f', number) end

local released = {}
-- How many ms of the route's capacity a released job takes, which no longer counts in the average of those that are parked.
local function takenBy(root, id)
  local pace, left = root .. 'fairness', redis.call('ZCARD', root .. 'prioritized')
  local mean = tonumber(redis.call('HGET', pace, 'interval') or 0)
  local interval = tonumber(redis.call('HGET', ARGV[2] .. id, 'interval') or mean)
  if left > 0 and interval ~= mean then
    redis.call('HSET', pace, 'interval', math.max(0, mean + (mean - interval) / left))
  end
  return interval
end

-- Moves jobs of low priority into the lines of their accounts, of all routes so many at a time that Redis is busy for some milliseconds.
local promotions = 100
local function promote(root)
  local parked, low = root .. 'prioritized', root .. 'low'
  local due = redis.call('ZRANGEBYSCORE', low, '-inf', now, 'LIMIT', 0, promotions)
  if not due[1] then return end
  promotions = promotions - #due
  local line = openLines(root, ARGV[2], parked)
  for _, id in ipairs(due) do
    redis.call('ZREM', low, id)
    local job = ARGV[2] .. id
    local account, key, work = unpack(redis.call('HMGET', job, 'account', 'key', 'work'))
    if redis.call('ZREM', parked, id) == 1 and account then
      line.leave(account, id, nil, key)
      local own = string.gsub(account, lowEnding .. '$', '')
      redis.call('HSET', job, 'account', own, 'work', string.format('%.17g', (tonumber(work) or lowWeight) / lowWeight))
      line.join(own, id, time, key)
    end
  end
end

-- Releases the next job of a route. Returns what it takes of the capacity; nil if none is left. Those that have ended, and were
-- removed by other tools, are left out.
local function release(root)
  local parked = root .. 'prioritized'
  local line, found = openLines(root, ARGV[2], parked), nil
  local high = redis.call('EXISTS', root .. 'high:lines') == 1 and openHighLane(root, ARGV[2], tonumber(ARGV[4]), parked)
  while not found do
    local id = high and high.claimNext(now, 0) or line.claimNext(now, 0, high and high.length() > 0)
    if not id then break end
    if redis.call('HGET', ARGV[2] .. id, 'data') then
      redis.call('HDEL', ARGV[2] .. id, 'account')
      redis.call('ZREM', root .. 'low', id)
      released[#released + 1] = id
      found = id
    end
  end
  local interval = found and takenBy(root, found)
  line.close()
  if high then high.close() end
  return interval
end

-- Whether the last job of the route has left; nothing of the route is kept then.
local function isOver(route, root)
  if redis.call('EXISTS', root .. 'prioritized') == 1 then return false end
  redis.call('ZREM', routes, route)
  redis.call('DEL', root .. 'fairness', root .. 'pc', root .. 'low')
  return true
end

for index = 5, #ARGV, 2 do
  local root = ARGV[1] .. ARGV[index] .. ':'
  if redis.call('ZSCORE', routes, ARGV[index]) then
    promote(root)
    local wanted = #released + ARGV[index + 1]
    while #released < math.min(wanted, most) and release(root) do end
    isOver(ARGV[index], root)
  end
end
for _, route in ipairs(redis.call('ZRANGEBYSCORE', routes, '-inf', now, 'LIMIT', 0, 100)) do
  local root = ARGV[1] .. route .. ':'
  local next = math.max(tonumber(redis.call('ZSCORE', routes, route)), now - makeUpMs)
  promote(root)
  local isEmpty = false
  while next <= now and #released < most and not isEmpty do
    local interval = release(root) or 0
    isEmpty = redis.call('EXISTS', root .. 'prioritized') == 0
    -- Without a known interval one is released at a time: its worker tells what it found.
    next = interval > 0 and next + interval * faster or now + 100
  end
  if not isOver(route, root) then
    redis.call('ZADD', routes, whole(next), route)
    redis.call('HSET', root .. 'fairness', 'at', whole(now))
  end
end
if #released > 0 then
  for index = #released, 1, -1 do redis.call('RPUSH', wait, released[index]) end
  redis.call('ZADD', marker, 0, '0')
end
local reply = {}
local due = redis.call('ZRANGE', routes, 0, 99, 'WITHSCORES')
for index = 1, #due, 2 do
  local route, at, root = due[index], tonumber(due[index + 1]), ARGV[1] .. due[index] .. ':'
  local interval, noted = unpack(redis.call('HMGET', root .. 'fairness', 'interval', 'at'))
  if isAhead(noted, now) then
    at = now
    redis.call('ZADD', routes, whole(now), route)
  end
  reply[#reply + 1] = route
  reply[#reply + 1] = whole(math.max(0, at - now))
  reply[#reply + 1] = redis.call('ZCARD', root .. 'prioritized')
  reply[#reply + 1] = interval or '0'
end
return reply
