-- Reserves calls of a vendor within the limits of the vendor as a whole, of one of its keys, and of that key for the model.
-- Requests and tokens a minute are leaky buckets (GCRA), each of which is one timestamp: when what was reserved so far will have
-- leaked out. Calls under way are leased members of a sorted set: a worker that dies gives its own back.
-- Preceded by is-ahead.lua.
-- KEYS[1] start of the keys of the vendor's tag
-- ARGV[1] how far ahead a call may be reserved, in ms: one with a better claim may come meanwhile
-- ARGV[2] lease of a call under way, in ms; then for each call:
--   1 its id   2 tokens that it is expected to use   3 how many more such calls to reserve, if all of them may start now; their
--   ids are the call's, a dot, and their numbers from 1   4 the scopes that limit it, four words each: name, requests a minute, tokens a
--   minute, calls at a time ('-' for none): the vendor, then for each key in order of preference the key, and the model on it
-- Returns for each call, in words: the number of the chosen key, or 0 if none has capacity near enough; ms until the call may
-- start, or until capacity is expected; ms of the vendor's capacity that such a call takes; 1 if calls under way are what is in
-- the way, else 0; how many more were reserved.
-- A repeat reserves once more, which is forgotten within a minute.
local root, ahead, lease = KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[2])
local time = redis.call('TIME')
local now = time[1] * 1000 + time[2] / 1000

-- Vendors count by their own clocks, and calls reach them unevenly: of each minute's limit this share is used, and this share
-- may come at once. Together with the first they stay below it.
local usedShare, burstShare = 0.97, 0.02
-- While calls under way are in the way, it is unknown when one ends.
local parallelWaitMs = 250
-- How long an unused bucket is kept; longer than any wait for it.
local keptMs = 7200000

local function formatted(number) return string.format('%.3f', number) end

-- What one scope allows: when a call may start, the ms that it takes of the scope's capacity, and what to write if it does.
local function look(name, rpm, tpm, parallel, used)
  local scope = {name = name, at = now, interval = 0}
  if name == '-' then return scope end
  rpm, tpm, parallel = tonumber(rpm), tonumber(tpm), tonumber(parallel)
  local key = root .. 'capacity:' .. name
  local buckets = redis.call('HMGET', key, 'requests', 'tokens', 'at')
  if isAhead(buckets[3], now) then
    redis.call('DEL', key)
    buckets = {}
  end
  if rpm then
    local each = 60000 / (rpm * usedShare)
    local burst = math.max(1, math.floor(rpm * burstShare))
    scope.requests, scope.requestMs = tonumber(buckets[1] or 0), each
    scope.burstMs = (burst - 1) * each
    scope.at = math.max(scope.at, scope.requests - scope.burstMs)
    scope.interval = each
  end
  if tpm then
    -- A call takes a minute's tokens at most: after a minute its vendor has forgotten it.
    scope.tokens, scope.tokenMs = tonumber(buckets[2] or 0), math.min(used, tpm) * 60000 / (tpm * usedShare)
    scope.at = math.max(scope.at, scope.tokens - burstShare * 60000)
    scope.interval = math.max(scope.interval, scope.tokenMs)
  end
  if parallel then
    local calls = root .. 'calls:' .. name
    redis.call('ZREMRANGEBYSCORE', calls, '-inf', formatted(now))
    -- No lease ends as late, but one that was noted by a clock ahead.
    redis.call('ZREMRANGEBYSCORE', calls, '(' .. formatted(now + ahead + lease + maxAheadMs), '+inf')
    local running = redis.call('ZCARD', calls)
    scope.calls, scope.isFull = calls, running >= parallel
    -- Half of what may run is nobody's until it is used: who asks for one call must find it.
    scope.spareCalls = math.max(0, math.floor((parallel / 2 - running - 1) / 2))
  end
  return scope
end

-- How many more calls of a size may start now in a bucket, once one has started. Times are rounded.
local function spareIn(full, each, burst) return math.floor((now + burst - math.max(full, now) - each) / each + 0.001) + 1 end

-- How many more calls may start now, once one has started.
local function spareOf(scope)
  local spare = scope.spareCalls or math.huge
  if scope.requestMs then spare = math.min(spare, spareIn(scope.requests, scope.requestMs, scope.burstMs)) end
  if scope.tokens and scope.tokenMs > 0 then spare = math.min(spare, spareIn(scope.tokens, scope.tokenMs, burstShare * 60000)) end
  return spare
end

local function write(scope, start, id, count)
  if scope.calls then
    local leases, untilText = {}, formatted(start + lease)
    for number = 0, count - 1 do
      leases[#leases + 1], leases[#leases + 2] = untilText, number == 0 and id or id .. '.' .. number
    end
    redis.call('ZADD', scope.calls, unpack(leases))
    redis.call('PEXPIRE', scope.calls, keptMs)
  end
  if not scope.requestMs and not scope.tokenMs then return end
  local key, fields = root .. 'capacity:' .. scope.name, {'at', formatted(now)}
  if scope.requestMs then
    fields[3], fields[4] = 'requests', formatted(math.max(scope.requests, start) + count * scope.requestMs)
  end
  if scope.tokenMs then
    fields[#fields + 1] = 'tokens'
    fields[#fields + 1] = formatted(math.max(scope.tokens, start) + count * scope.tokenMs)
  end
  redis.call('HSET', key, unpack(fields))
  redis.call('PEXPIRE', key, keptMs)
end

local function reserve(id, tokens, more, text)
  local words = {}
  for word in string.gmatch(text, '%S+') do words[#words + 1] = word end
  local function scopeAt(at) return look(words[at], words[at + 1], words[at + 2], words[at + 3], tokens) end
  local vendor = scopeAt(1)
  local chosen, start, isFull, rate, isUnlimited = 0, nil, true, 0, false
  local scopes
  for at = 5, #words, 8 do
    local key, model = scopeAt(at), scopeAt(at + 4)
    local from = math.max(vendor.at, key.at, model.at)
    local interval = math.max(key.interval, model.interval)
    if interval == 0 then isUnlimited = true else rate = rate + 1 / interval end
    local full = vendor.isFull or key.isFull or model.isFull
    -- One that only calls under way keep from starting is no better than one that starts later.
    if not full and (isFull or from < start) then
      chosen, start, isFull, scopes = (at + 3) / 8, from, false, {vendor, key, model}
    end
    start = start or math.max(from, now + parallelWaitMs)
  end
  local interval = vendor.interval
  if not isUnlimited and rate > 0 then interval = math.max(interval, 1 / rate) end
  if isFull or start - now > ahead then
    return table.concat({'0', formatted(start - now), formatted(interval), isFull and '1' or '0', '0'}, ' ')
  end
  if start > now then more = 0 end
  for _, scope in ipairs(scopes) do more = math.max(0, math.min(more, spareOf(scope))) end
  for _, scope in ipairs(scopes) do write(scope, start, id, 1 + more) end
  return table.concat({chosen, formatted(start - now), formatted(interval), '0', more}, ' ')
end

local replies = {}
for at = 3, #ARGV, 4 do
  replies[#replies + 1] = reserve(ARGV[at], tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2]), ARGV[at + 3])
end
return replies
