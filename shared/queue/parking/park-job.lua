-- Parks a claimed job whose vendor has no capacity: it leaves its worker, and waits in a line of its route, in which accounts have
-- fair shares as in the queue, behind those of high priority. Preceded by is-ahead.lua, keys-in-line.lua, lines.lua and high-lane.lua.
-- One of low priority waits in a second line of its account, so that nothing else waits behind it; there each weighs 16 times its
-- work, so that they have a small share of what comes. See unpark-jobs.lua for how it leaves that line.
-- KEYS[1] active (list)   KEYS[2] the job (hash)   KEYS[3] its lock   KEYS[4] routes with parked jobs (sorted set)
-- ARGV[1] id   ARGV[2] token of its claim   ARGV[3] its account   ARGV[4] route   ARGV[5] ms until the route has capacity, or ''
-- ARGV[6] ms of the route's capacity that it takes, or ''   ARGV[7] ms in which it must start   ARGV[8] maximum number of parked jobs
-- ARGV[9] start of the route's keys   ARGV[10] start of the jobs' keys   ARGV[11] how early it is released, in ms
-- ARGV[12] its work   ARGV[13] share of the releases that jobs of high priority may have while others wait
-- ARGV[14] its API key, if its account shares its turns between keys; else ''
-- ARGV[15] share of the line's free places that its account may fill while others wait; alone it leaves that share free
-- ARGV[16] ms until it no longer counts as of low priority; '' if it does not now   ARGV[17] number of the queue's shards, in each of
-- which as many are expected to wait for the route   ARGV[18] how much earlier one is released that was too early before, in ms
-- Returns what became of it, ms, and how many wait in the line:
--   parked, until the next job is released
--   late, until it would start: it stays claimed
--   lost: the claim no longer holds
local active, job, lock, routes = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local id, account, route, root = ARGV[1], ARGV[3], ARGV[4], ARGV[9]
local wait, interval, early = tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[11])
local work, lowMs, low = tonumber(ARGV[12]), tonumber(ARGV[16]), root .. 'low'
if lowMs then account, work = account .. lowEnding, work * lowWeight end
if redis.call('GET', lock) ~= ARGV[2] then return {'lost', '0', 0} end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local parked, pace = root .. 'prioritized', root .. 'fairness'
local function whole(number) return string.format('%.0f', number) end

local before = redis.call('ZCARD', parked)
-- What parked jobs take on average; those of which it is not known are taken to be as the others.
local known, noted = unpack(redis.call('HMGET', pace, 'interval', 'at'))
local mean = tonumber(known or 0)
local next = tonumber(redis.call('ZSCORE', routes, route) or now)
if isAhead(noted, now) then next = now end
local parkedFor, high = unpack(redis.call('HMGET', job, 'parked', 'high'))
-- One that was released for this route already is the first again, when there is capacity: it was counted, and has got none.
local isFirst = parkedFor == route
if wait and isFirst and wait > early then next = now + math.max(0, wait - early - ARGV[18])
elseif wait then next = math.max(next, now + wait - early) end
local lane = openHighLane(root, ARGV[10], tonumber(ARGV[13]), parked)
local line = high and lane or openLines(root, ARGV[10], parked)
local key = ARGV[14] ~= '' and ARGV[14]
local rank, isFull = 0, not isFirst and before >= tonumber(ARGV[8])
-- Whether its account fills its share of the line, as admission has it of a queue. A few jobs are never a flood.
local fewParked = 16
local function hasItsShare()
  local most, share, own = tonumber(ARGV[8]), tonumber(ARGV[15]), 0
  for _, lines in ipairs({'lines', 'high:lines'}) do own = own + tonumber(redis.call('ZSCORE', root .. lines, account) or 0) end
  local others = before - own
  if others <= 0 then return before >= most - math.floor(most * math.min(share, 1 - share)) end
  return own >= math.max(fewParked, (most - others) * share)
end
if isFirst then
  -- Before those of high priority, whose scores are above 1.
  redis.call('ZADD', parked, string.format('%.17g', redis.call('INCR', root .. 'pc') / 4294967296), id)
else
  isFull = isFull or hasItsShare()
  redis.call('HSET', job, 'work', string.format('%.17g', work))
  redis.call('HDEL', job, 'interval')
  if not high then redis.call('HSET', job, 'account', account) end
  if key then redis.call('HSET', job, 'key', key) end
  line.join(account, id, time, key)
  if lowMs then
    redis.call('ZADD', low, whole(now + lowMs), id)
    -- As long as the line: what ends the line in another way removes nothing of it.
    redis.call('PEXPIRE', low, 172800000)
  end
  local highParked = lane.length()
  if high then
    rank = line.ahead(account, id, before + 1 - highParked)
  elseif lowMs then
    rank = before + 1 - redis.call('ZCARD', low) + redis.call('ZRANK', low, id)
  else
    rank = line.ahead(account, id) - highParked
    rank = rank + lane.aheadOfOther(rank)
  end
end
-- A repeat of the average: those before it may still have to be released.
local lineMs = rank * tonumber(ARGV[17]) * mean
local startsIn = math.max(next + early, now) + lineMs - now
-- Others may come in between, and each may take longer: who just misses its deadline has taken the place of one that would not.
local spare = 0.25 * lineMs
if startsIn + spare > tonumber(ARGV[7]) or isFull then
  redis.call('ZREM', parked, id)
  redis.call('ZREM', low, id)
  if not isFirst then
    line.leave(account, id, nil, key)
    redis.call('HDEL', job, 'account')
  end
  -- Of a line that does not begin nothing is kept: nobody would come to remove it.
  if before == 0 then redis.call('DEL', root .. 'pc') end
  return {'late', whole(startsIn), before}
end
redis.call('LREM', active, -1, id)
redis.call('DEL', lock)
redis.call('HSET', job, 'parked', route, 'priority', 0)
if interval then
  redis.call('HSET', job, 'interval', interval)
  if before > 0 and mean > 0 then interval = mean + (interval - mean) / (before + 1) end
  redis.call('HSET', pace, 'interval', interval)
end
redis.call('ZADD', routes, whole(next), route)
redis.call('HSET', pace, 'at', whole(now))
return {'parked', whole(math.max(0, next - now)), before + 1}
