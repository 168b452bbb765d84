-- Settles jobs of one account tag: releases their holds, charges them, and adds their records to the outbox, once. A job
-- without a hold and without a reservation is skipped: it was settled before, or Redis has lost its hold.
-- Preceded by is-ahead.lua.
-- KEYS[1] holds (sorted set)   KEYS[2] outbox (stream)
-- All other keys lie in the same tag and are built from ARGV[1] and their names (see shared/redis/keys.ts).
-- ARGV[1] prefix of the tag's keys
-- ARGV[2] '1' if the states of these jobs report them as unsettled: their holds were lost. Each gets its record (with field l: it
--   is charged when the database has it, and had none before), except those already in the outbox: the process that settled
--   them could not mark the state, and their record contains the charge
-- ARGV[6n-3] member of the holds: '<job id> <account> <API key id> <capability>'
-- ARGV[6n-2] '' or the hash of the idempotency key to be freed
-- ARGV[6n-1] the job's record, or '' if nothing is known of it
-- ARGV[6n] its cost in nano-dollars; 'held' if the cost is unknown and the whole hold is charged; '' if nothing is charged
-- ARGV[6n+1] tokens used, or ''
-- ARGV[6n+2] '' or the name under which a retry finds it, and for how many ms one still may: 'name ms'
-- Returns the jobs that had no hold, by number from 1.
local time = redis.call('TIME')
local prefix, now, isUnsettled = ARGV[1], time[1] * 1000 + math.floor(time[2] / 1000), ARGV[2] == '1'
local reserved = prefix .. 'reserved'
-- Sums stop here: none may fail, or lose its last digits, because of one job's reported cost.
local most = 9007199254740991
-- Lua allows no more arguments than this at once.
local chunk = 1000
-- State shared by many jobs is read once and written at the end: sums by key and field, rate levels, members to remove.
local reserving, missing, accounts, budgets, known, rates, ended = nil, {}, {}, {}, {}, {}, {}
-- Reservations to release: in order, and by job, as a job may occur twice.
local released, reservations = {}, {}

local function add(sums, key, field, amount)
  sums[key] = sums[key] or {}
  sums[key][field] = math.max(-most, math.min(most, (sums[key][field] or 0) + amount))
end

-- The hash of a key's budget, which the key's own names if it is common, its period and when that began; both empty if the key
-- has no budget.
local function budgetOf(own)
  if known[own] == nil then
    local budget, read = own, redis.call('HMGET', own, 'period', 'from', 'common')
    if read[3] then
      budget = prefix .. 'budget:' .. read[3]
      read = redis.call('HMGET', budget, 'period', 'from')
    end
    known[own] = {budget, read[1], read[2]}
  end
  return known[own][1], known[own][2], tonumber(known[own][3] or nil)
end

-- When a job was created: the first 48 bits of its id. (In two parts, as numbers of the embedded Redis have 32 bits.)
local function timeOf(job)
  local high, low = tonumber(string.sub(job, 1, 6), 16), tonumber(string.sub(job, 7, 12), 16)
  return high and low and high * 16777216 + low or now
end

-- A job's cost counts in the budget's period if it was admitted under that period, or was created in it whatever the budget was.
local function spend(apiKey, job, held, period, charged)
  local budget, current, from = budgetOf(prefix .. 'budget:' .. apiKey)
  if not current then return end
  if period == current then add(budgets, budget, 'held', -held) end
  if charged > 0 and (period == current or (from and timeOf(job) >= from)) then add(budgets, budget, 'spent', charged) end
end

-- Replaces the estimated tokens of a job by the tokens used. The debt is at most one minute's worth.
local function correctOne(rate, limit, field, tokens, took)
  rates[rate] = rates[rate] or {}
  local bucket = rates[rate][field]
  if bucket == nil then
    -- One that has long drained is gone: the job may have run for longer.
    local used, at = string.match(redis.call('HGET', rate, field) or '', '^(%S+) (%S+)$')
    bucket = isAhead(at, now) and {0, now} or {tonumber(used or 0), tonumber(at or now)}
    rates[rate][field] = bucket
  end
  local level = math.max(0, bucket[1] - math.max(0, now - bucket[2]) * limit / 60000)
  bucket[1] = math.min(2 * limit, math.max(0, level + took - math.min(tokens, limit)))
  bucket[2] = math.max(now, bucket[2])
end

local function correct(rate, limits, tokens, took)
  local ofKey, ofModel, model = string.match(limits, '^%S+ (%S+) %S+ (%S+) %S+ (%S+)')
  ofKey, ofModel = tonumber(ofKey or 0), tonumber(ofModel or 0)
  if ofKey > 0 then correctOne(rate, ofKey, 'tokens ', tokens, took) end
  if ofModel > 0 then correctOne(rate, ofModel, 'tokens ' .. model, tokens, took) end
end

local function record(text, cost, charged, ...)
  if text == '' then return end
  if cost == '' or (cost == 'held' and charged == 0) then redis.call('XADD', KEYS[2], '*', 'r', text, ...)
  else redis.call('XADD', KEYS[2], '*', 'r', text, 'c', string.format('%.0f', charged), ...) end
end

-- Whether one of the newest records is the job's. Older ones are in the database, or get there first.
local newest
local function isRecorded(job)
  if newest == nil then
    newest = {}
    for _, entry in ipairs(redis.call('XREVRANGE', KEYS[2], '+', '-', 'COUNT', chunk)) do
      local id = string.match(entry[2][2], '"id":"(%x+)"')
      if id then newest[id] = true end
    end
  end
  return newest[job]
end

for index = 3, #ARGV, 6 do
  local member, binding, text, cost, took, retried = unpack(ARGV, index, index + 5)
  local job, account, apiKey, capability = string.match(member, '^(%S+) (%S+) (%S+) ?(%S*)$')
  -- Writes that free memory come first: Redis lets a script that has written continue when memory is full.
  local isHeld = redis.call('ZREM', KEYS[1], member) == 1
  if reserving == nil then reserving = redis.call('EXISTS', reserved) == 1 end
  local entry = reserving and not reservations[job] and redis.call('HGET', reserved, job)
  local charged = math.min(most, tonumber(cost) or 0)
  if isHeld or entry then
    local key = prefix .. 'account:' .. account
    local held, period = 0, '-'
    add(accounts, key, 'n:' .. capability, -1)
    if entry then
      released[#released + 1] = job
      reservations[job] = true
      local amount, tokens, counted, limits = string.match(entry, '^(%S+) (%S+) %S+ (%S+) ?(.*)$')
      period = counted
      if amount ~= '-' then
        held = tonumber(amount)
        charged = cost == 'held' and held or math.min(charged, held)
        add(accounts, key, 'held', -held)
      end
      if limits ~= '' then correct(prefix .. 'rate:' .. apiKey, limits, tonumber(tokens), tonumber(took ~= '' and took or 0)) end
    end
    if charged > 0 or held > 0 then spend(apiKey, job, held, period, charged) end
    if charged > 0 then add(accounts, key, 'charged', charged) end
    record(text, cost, charged)
  elseif isUnsettled then
    if not isRecorded(job) then record(text, cost, charged, 'l', '1') end
  else
    missing[#missing + 1] = (index + 3) / 6
  end
  local running = prefix .. 'running:' .. apiKey
  ended[running] = ended[running] or {}
  table.insert(ended[running], job)
  if binding ~= '' then
    binding = prefix .. 'idempotency:' .. binding
    if redis.call('HGET', binding, 'job') == job then redis.call('DEL', binding) end
  end
  if retried ~= '' then
    local name, lifetime = string.match(retried, '^(%S+) (%d+)$')
    name = prefix .. 'retry:' .. name
    if redis.call('GET', name) == job then redis.call('PEXPIRE', name, lifetime) end
  end
end
for running, jobs in pairs(ended) do
  for from = 1, #jobs, chunk do redis.call('ZREM', running, unpack(jobs, from, math.min(#jobs, from + chunk - 1))) end
end
for from = 1, #released, chunk do
  redis.call('HDEL', reserved, unpack(released, from, math.min(#released, from + chunk - 1)))
end
for rate, fields in pairs(rates) do
  for field, bucket in pairs(fields) do
    redis.call('HSET', rate, field, string.format('%.3f %.0f', bucket[1], bucket[2]))
  end
  -- A debt lasts for two minutes, see rate-buckets.lua.
  redis.call('PEXPIRE', rate, 180000)
end

local function raise(key, field, amount)
  local sum = redis.pcall('HINCRBY', key, field, string.format('%.0f', amount))
  local isTooMuch = type(sum) == 'table' and string.find(sum.err, 'overflow')
  if type(sum) == 'table' and not isTooMuch then error(sum) end
  if isTooMuch or sum > most then redis.call('HSET', key, field, string.format('%.0f', most))
  -- A budget whose period kind was changed and changed back has lost its held amount.
  elseif sum < 0 then redis.call('HSET', key, field, 0) end
end

for _, sums in ipairs({accounts, budgets}) do
  for key, fields in pairs(sums) do
    for field, amount in pairs(fields) do if amount ~= 0 then raise(key, field, amount) end end
  end
end
return missing
