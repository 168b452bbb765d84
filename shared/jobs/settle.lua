-- Settles jobs of one account tag: takes their holds off, charges them, and puts their records into the outbox, once. No
-- hold, nothing happens.
-- KEYS[1] holds (sorted set)   KEYS[2] outbox (stream)
-- All other keys lie in the same tag: ARGV[1] and their names make them (see shared/keys.ts).
-- ARGV[1] prefix of the tag's keys
-- ARGV[5n-3] member of the holds: '<job id> <account> <API key id> <capability>'
-- ARGV[5n-2] '' or the hash of the idempotency key that is to be freed
-- ARGV[5n-1] the job's record, or '' where nothing is known of it
-- ARGV[5n] what it has cost in nano-dollars, or '' where nobody knows   ARGV[5n+1] tokens it took, or ''
-- Answers how many were settled by this call.
local time = redis.call('TIME')
local prefix, now = ARGV[1], time[1] * 1000 + math.floor(time[2] / 1000)
local reserved = prefix .. 'reserved'
-- What many of them change is read once, and written at the end: sums by key and field, levels of rates, members to be taken out.
local settled, reserving, accounts, budgets, periods, rates, released, ended = 0, nil, {}, {}, {}, {}, {}, {}

local function add(sums, key, field, amount)
  sums[key] = sums[key] or {}
  sums[key][field] = (sums[key][field] or 0) + amount
end

local function periodOf(budget)
  if periods[budget] == nil then periods[budget] = redis.call('HGET', budget, 'period') end
  return periods[budget]
end

-- A job is counted by what it took, not by what it was thought to take. At most a minute's worth is owed.
local function correctOne(rate, limit, field, tokens, took)
  rates[rate] = rates[rate] or {}
  local bucket = rates[rate][field]
  if bucket == nil then
    local used, at = string.match(redis.call('HGET', rate, field) or '', '^(%S+) (%S+)$')
    bucket = used and {tonumber(used), tonumber(at)} or false
    rates[rate][field] = bucket
  end
  if bucket then
    local level = math.max(0, bucket[1] - math.max(0, now - bucket[2]) * limit / 60000)
    bucket[1] = math.min(2 * limit, math.max(0, level + took - math.min(tokens, limit)))
    bucket[2] = math.max(now, bucket[2])
  end
end

local function correct(rate, limits, tokens, took)
  local ofKey, ofModel, model = string.match(limits, '^%S+ (%S+) %S+ (%S+) %S+ (%S+)')
  ofKey, ofModel = tonumber(ofKey or 0), tonumber(ofModel or 0)
  if ofKey > 0 then correctOne(rate, ofKey, 'tokens ', tokens, took) end
  if ofModel > 0 then correctOne(rate, ofModel, 'tokens ' .. model, tokens, took) end
end

for index = 2, #ARGV, 5 do
  local member, binding, record, cost, took = unpack(ARGV, index, index + 4)
  local job, account, apiKey, capability = string.match(member, '^(%S+) (%S+) (%S+) ?(%S*)$')
  -- The write that frees comes first: Redis lets a script that has written go on when its memory is full.
  if redis.call('ZREM', KEYS[1], member) == 1 then
    settled = settled + 1
    if reserving == nil then reserving = redis.call('EXISTS', reserved) == 1 end
    local charged = tonumber(cost ~= '' and cost or 0)
    local entry = reserving and redis.call('HGET', reserved, job)
    local key = prefix .. 'account:' .. account
    add(accounts, key, 'n:' .. capability, -1)
    if entry then
      released[#released + 1] = job
      local held, tokens, period, limits = string.match(entry, '^(%S+) (%S+) %S+ (%S+) ?(.*)$')
      if held ~= '-' then
        charged = math.min(charged, tonumber(held))
        add(accounts, key, 'held', -tonumber(held))
        local budget = prefix .. 'budget:' .. apiKey
        if period ~= '-' and periodOf(budget) == period then
          add(budgets, budget, 'held', -tonumber(held))
          add(budgets, budget, 'spent', charged)
        end
      end
      if limits ~= '' then correct(prefix .. 'rate:' .. apiKey, limits, tonumber(tokens), tonumber(took ~= '' and took or 0)) end
    end
    if charged > 0 then add(accounts, key, 'charged', charged) end
    if record ~= '' then
      if cost == '' then redis.call('XADD', KEYS[2], '*', 'r', record)
      else redis.call('XADD', KEYS[2], '*', 'r', record, 'c', string.format('%.0f', charged)) end
    end
  end
  local running = prefix .. 'running:' .. apiKey
  ended[running] = ended[running] or {}
  table.insert(ended[running], job)
  if binding ~= '' then
    binding = prefix .. 'idempotency:' .. binding
    if redis.call('HGET', binding, 'job') == job then redis.call('DEL', binding) end
  end
end
for running, jobs in pairs(ended) do redis.call('ZREM', running, unpack(jobs)) end
if #released > 0 then redis.call('HDEL', reserved, unpack(released)) end
for rate, fields in pairs(rates) do
  for field, bucket in pairs(fields) do
    if bucket then redis.call('HSET', rate, field, string.format('%.3f %.0f', bucket[1], bucket[2])) end
  end
end
for _, sums in ipairs({accounts, budgets}) do
  for key, fields in pairs(sums) do
    for field, amount in pairs(fields) do
      local sum = amount ~= 0 and redis.call('HINCRBY', key, field, string.format('%.0f', amount))
      -- A budget whose kind of period was changed, and changed back, has forgotten what it held.
      if sum and sum < 0 then redis.call('HSET', key, field, 0) end
    end
  end
end
return settled
