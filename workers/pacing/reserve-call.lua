-- Reserves calls of a vendor within the limits of the vendor as a whole, of one of its keys, and of that key for the model.
-- Requests and tokens a minute are leaky buckets (GCRA), each of which is one timestamp: when what was reserved so far will have
-- leaked out. Calls under way are leased members of a sorted set: a worker that dies gives its own back.
-- KEYS[1] start of the keys of the vendor's tag
-- ARGV[1] how far ahead a call may be reserved, in ms: one with a better claim may come meanwhile
-- ARGV[2] lease of a call under way, in ms; then for each call:
--   1 its id   2 tokens that it is expected to use   3 how many more such calls to reserve, if only requests a minute are limited
--   and all of them may start now   4 the scopes that limit it, four words each: name, requests a minute, tokens a
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
  local buckets = redis.call('HMGET', root .. 'capacity:' .. name, 'requests', 'tokens')
  if rpm then
    local each = 60000 / (rpm * usedShare)
    local burst = math.max(1, math.floor(rpm * burstShare))
    scope.requests, scope.requestMs = tonumber(buckets[1] or 0), each
    scope.burstMs = (burst - 1) * each
    scope.at = math.max(scope.at, scope.requests - scope.burstMs)
    scope.interval = each
  end
  if tpm then
    scope.tokens, scope.tokenMs = tonumber(buckets[2] or 0), used * 60000 / (tpm * usedShare)
    scope.at = math.max(scope.at, scope.tokens - burstShare * 60000)
    scope.interval = math.max(scope.interval, scope.tokenMs)
  end
  if parallel then
    local calls = root .. 'calls:' .. name
    redis.call('ZREMRANGEBYSCORE', calls, '-inf', formatted(now))
    scope.calls, scope.isFull = calls, redis.call('ZCARD', calls) >= parallel
  end
  return scope
end

-- How many more calls may start now, once one has started.
local function spareOf(scope)
  if scope.calls or scope.tokenMs then return 0 end
  if not scope.requestMs then return math.huge end
  local full = math.max(scope.requests, now) + scope.requestMs
  -- Times are rounded.
  return math.floor((now + scope.burstMs - full) / scope.requestMs + 0.001) + 1
end

local function write(scope, start, id, count)
  if scope.calls then
    redis.call('ZADD', scope.calls, formatted(start + lease), id)
    redis.call('PEXPIRE', scope.calls, keptMs)
  end
  if not scope.requestMs and not scope.tokenMs then return end
  local key, fields = root .. 'capacity:' .. scope.name, {}
  if scope.requestMs then
    fields[1], fields[2] = 'requests', formatted(math.max(scope.requests, start) + count * scope.requestMs)
  end
  if scope.tokenMs then
    fields[#fields + 1] = 'tokens'
    fields[#fields + 1] = formatted(math.max(scope.tokens, start) + scope.tokenMs)
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
