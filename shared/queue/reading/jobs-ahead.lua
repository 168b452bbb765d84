-- Returns how many jobs are claimed before one that waits, as far as is known; -1 if it does not wait; for a parked one, in its line,
-- with ms until the next one there is released, and ms of the route's capacity that each takes on average. Preceded by keys-in-line.lua, lines.lua, flex-lane.lua and high-lane.lua.
-- KEYS[1] the job (hash)   KEYS[2] prioritized (sorted set)   KEYS[3] wait (list)
-- ARGV[1] its id in the queue   ARGV[2] start of the queue's keys   ARGV[3] start of the jobs' keys
-- ARGV[4] share of the claims that jobs of high priority may have while others wait
local job, prioritized, wait, id = KEYS[1], KEYS[2], KEYS[3], ARGV[1]
-- Jobs are pushed at the head of the list and claimed from its tail; those with a priority come after all of them.
local index, untimed, timed = redis.call('LPOS', wait, id), redis.call('LLEN', wait), redis.call('ZCARD', prioritized)
local account, lane, isHigh, route = unpack(redis.call('HMGET', job, 'account', 'lane', 'high', 'parked'))
local high = openHighLane(ARGV[2], ARGV[3], tonumber(ARGV[4]))
local highWaiting = high.length()
if index then
  local before = untimed - 1 - index
  -- One of high priority in the list was claimed before.
  if isHigh then return before end
  return before + high.aheadOfOther(before)
end
if lane then
  local ahead = openFlexLane(ARGV[2], ARGV[3]).ahead(account, id)
  return ahead and untimed + timed + ahead or -1
end
local root = route and ARGV[2] .. 'parked:' .. route .. ':'
if root and redis.call('ZSCORE', root .. 'prioritized', id) then
  local parked = root .. 'prioritized'
  local lane = openHighLane(root, ARGV[3], tonumber(ARGV[4]), parked)
  local highParked, ahead = lane.length(), redis.call('ZRANK', parked, id)
  -- One that came back from a release is the first, and in no line.
  if redis.call('ZCOUNT', parked, '-inf', '(1') <= ahead then
    if isHigh then
      ahead = lane.ahead(isHigh, id, redis.call('ZCARD', parked) - highParked)
    elseif redis.call('ZSCORE', root .. 'low', id) then
      ahead = redis.call('ZCARD', parked) - redis.call('ZCARD', root .. 'low') + redis.call('ZRANK', root .. 'low', id)
    else
      ahead = openLines(root, ARGV[3], parked).ahead(account, id) - highParked
      ahead = ahead + lane.aheadOfOther(ahead)
    end
  end
  local time = redis.call('TIME')
  local next = redis.call('ZSCORE', ARGV[2] .. 'parked', route) or 0
  local untilNext = math.max(0, next - time[1] * 1000 - time[2] / 1000)
  return {ahead, math.floor(untilNext), redis.call('HGET', root .. 'fairness', 'interval') or '0'}
end
if isHigh then
  -- Those that were claimed before are the next ones. Of them few are read.
  local last, returned = redis.call('LRANGE', wait, -100, -1), 0
  while returned < #last and redis.call('HEXISTS', ARGV[3] .. last[#last - returned], 'high') == 1 do returned = returned + 1 end
  local ahead = high.ahead(isHigh, id, untimed - returned + timed - highWaiting)
  return ahead and returned + ahead or -1
end
local ahead = openLines(ARGV[2], ARGV[3]).ahead(account, id)
if not ahead then return -1 end
-- Those of high priority are the first of the sorted set, up to their share.
local before = untimed + ahead - highWaiting
return before + high.aheadOfOther(before)
