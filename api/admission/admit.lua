-- Admits jobs of one API key and capability, each separately and in order, or reports why one is refused. A refusal changes
-- nothing. An admitted job is queued in the same step if its queue is on the same node.
-- Preceded by refusal.lua, which makes a refused write an error of the whole call, by add-job.lua, is-ahead.lua and
-- rate-buckets.lua.
-- KEYS[1] holds of the account's tag (sorted set)
-- KEYS[2…] state of each job (hash), created with the admission; none on a Cluster, where they are on other nodes
-- All other keys of the account share the tag: ARGV[1] and their names make them (see shared/redis/keys.ts).
-- ARGV[1] prefix of the tag's keys   ARGV[2] account   ARGV[3] API key id   ARGV[4] capability
-- ARGV[5] the caller's revision of the API key   ARGV[6] maximum of unfinished jobs of the key
-- ARGV[7] ms until the sweeper first checks the holds
-- ARGV[8] '' or why new work is shed (the caller reads queue length and memory, which have other tags)
-- ARGV[9] '<jobs> <waiting> <active> <limit> <share> <beside> <own>': unfinished jobs of an account from which on its next one gets a
--          priority (0 unless the queue flows); jobs that wait in the queue, active jobs, and the maximum of waiting ones; the share
--          of the rest that an account may fill while others wait; how many of its unfinished jobs wait beside the queue, and how many
--          of those that wait in the queue may be its own at most
-- ARGV[10] '' or the key's budget: 'nano-dollars period start common', the start of the period in ms, and '' or the name of the
--          budget that it shares with the keys which it was rotated to or from
-- ARGV[11] 'requests tokens': the key's limits per minute, 0 for none
-- ARGV[12] prefix of the queue's keys; '' on a Cluster
-- ARGV[13] process that waits for the answers
-- Then twelve per job:
--   1 job id
--   2 '' or hashes of its idempotency key and its body, the binding's lifetime in ms, and '' or the bound job that it replaces once
--     it is admitted: 'key body lifetime replaced'. With the name of a shared job (see single-flight.ts) as the key, it becomes
--     that job only if it could be sent itself
--   3 its hold: 'fixed price tokens least', in nano-dollars, nano-dollars per 1000 output tokens, their maximum, and the
--     minimum to which they may be lowered; '' if the model has no price, '?' if not estimated
--   4 '' or its share of limits per minute: 'model-requests model-tokens tokens model', 0 for no limit of the model, tokens
--     0 if no limit counts them, and '-' if the model has no limit
--   5 lifetime of its state in ms   6 its deadline   7 its identity as JSON, if its state is made here
--   8, 9 '' or another field of its state, its value
--   10 '' or further fields for its queue, as the rest of a JSON object, if it is to be queued in the same step
--   11 time in ms by Redis's clock after which it must not be admitted: its client has given up by then
--   12 '' or the name under which its client library's retries find it, for how many ms, and 1 if it is such a retry itself:
--     'name lifetime retry'
-- Returns for each job, separated by tabs: verdict, job id or detail, unfinished jobs of the key, if it gets a priority its account's
-- weight in queues and 1 if its keys share its turns ('1' of a repeat; 0 without a priority), lowered
-- maximum of tokens (0: unchanged), the rest of the key's limits ('requests reset-ms tokens reset-ms' or ''), 1 if it is queued,
-- else 0, and its hold in nano-dollars ('-': it needs none). Verdicts:
--   unknown      the flag is not in Redis: load it from the database and retry
--   changed      the key has changed since the caller was read: read it again and retry
--   revoked      the key is no longer valid
--   unloaded     the account, or the key's spending, is not in Redis: load it and retry
--   suspended    the account is suspended
--   replay, job  the idempotency key is bound to this job, with the same body; or this is the job of an earlier try, or one to join
--   reused, job  …with another body
--   late         its time is up; a call may be resent long after its caller has disconnected
--   shed, queue_full, …   refused for ARGV[8]
--   queue_share  the account fills its share of the queue
--   concurrency  the key has its maximum of unfinished jobs
--   rate, 'requests|tokens limit wait-ms asked model'   a limit per minute is exhausted
--   unasked      the hold matters: estimate it and retry
--   unpriced     the cost is unknown, and the account's or the key's spending is limited
--   balance, budget, 'cost left held'   insufficient for the hold; what unfinished jobs hold if it suffices once they have ended, else 0
--   admitted     the job is held
--   error, message   this job failed
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local nowText, firstLook = string.format('%.0f', now), string.format('%.0f', now + ARGV[7])
local prefix, key, capability = ARGV[1], ARGV[3], ARGV[4]
local firstJob, perJob = 14, 12
local account, running = prefix .. 'account:' .. ARGV[2], prefix .. 'running:' .. key
local rate, budgetKey, reserved = prefix .. 'rate:' .. key, prefix .. 'budget:' .. key, prefix .. 'reserved'

local function answer(verdict, detail, count, hasPriority, lowered, left, queued, amount)
  local most = amount or '-'
  return table.concat({verdict, detail or '', count or 0, hasPriority or 0, lowered or 0, left or '', queued or 0, most}, '\t')
end

local function answerAll(verdict, detail)
  local replies = {}
  for _ = firstJob, #ARGV, perJob do replies[#replies + 1] = answer(verdict, detail) end
  return replies
end

-- Shared state is read once, updated with each admitted job, and written at the end.
local flag = redis.call('GET', prefix .. 'key:' .. key)
if not flag then return answerAll('unknown') end
if flag == '0' then return answerAll('revoked') end
if flag ~= ARGV[5] then return answerAll('changed') end
local money = redis.call('HMGET', account, 'credit', 'charged', 'held', 'suspended', 'n:' .. capability, 'weight', 'by_key')
if not money[1] then return answerAll('unloaded', 'account') end
if money[4] == '1' then return answerAll('suspended') end
local held, unfinished = tonumber(money[3] or 0), tonumber(money[5] or 0)
local balance = money[1] ~= '' and tonumber(money[1]) - tonumber(money[2] or 0)
local count = redis.call('ZCARD', running)
local withoutPriority, waiting, active, queueLimit, queueShare, beside, maxOwn =
  string.match(ARGV[9], '^(%S+) (%S+) (%S+) (%S+) (%S+) (%S+) (%S+)$')
waiting, active, queueLimit, queueShare = tonumber(waiting), tonumber(active), tonumber(queueLimit), tonumber(queueShare)
withoutPriority, beside, maxOwn = tonumber(withoutPriority), tonumber(beside), tonumber(maxOwn)
local buckets
local runningNow, holds, reservations, queued = {}, {}, {}, {}

-- The key's budget: period, spent and held; false if it is not in Redis, or has another kind of period, whose sums do not apply,
-- or one that is yet to come, or if the key's jobs are not settled into it (see load-budget.lua).
local maxBudget, period, budget, periodStart = nil, '-', nil, nil
if ARGV[10] ~= '' then
  local common
  maxBudget, period, periodStart, common = string.match(ARGV[10], '^(%S+) (%S+) (%S+) (%S*)$')
  maxBudget = tonumber(maxBudget)
  budget = redis.call('HMGET', budgetKey, 'period', 'spent', 'held', 'from', 'common')
  if common ~= '' and budget[5] == common then
    budgetKey = prefix .. 'budget:' .. common
    budget = redis.call('HMGET', budgetKey, 'period', 'spent', 'held', 'from')
  elseif common ~= '' then budget = {}
  end
  if not budget[1] or string.match(budget[1], '^%a+') ~= string.match(period, '^%a+') or isAhead(budget[4], now) then
    budget = false
  else
    -- A new period starts with nothing spent; remaining holds belong to the earlier one. A process whose clock is behind does not
    -- restore the previous period, and one whose clock is ahead does not start the next.
    if budget[1] > period or isAhead(periodStart, now) then period, periodStart = budget[1], budget[4] or periodStart
    elseif budget[1] ~= period then budget = {period, 0, 0} end
    budget = {spent = tonumber(budget[2]), held = tonumber(budget[3])}
  end
end

-- Returns the amount to hold of balance and budget for a job, and its lowered output; or why it cannot be paid.
-- isAlone: as if nothing else were held.
local function price(hold, isAlone)
  local spendable, short, others = math.huge, nil, 0
  if balance then spendable, short, others = balance - (isAlone and 0 or held), 'balance', isAlone and 0 or held end
  local rest = budget and maxBudget - budget.spent - (isAlone and 0 or budget.held)
  if rest and rest < spendable then spendable, short, others = rest, 'budget', isAlone and 0 or budget.held end
  if not short then return nil, 0 end
  if hold == '?' then return 'unasked' end
  if hold == '' then return 'unpriced' end
  local fixed, price, most, least = string.match(hold, '^(%S+) (%S+) (%S+) (%S+)$')
  fixed, price, most, least = tonumber(fixed), tonumber(price), tonumber(most), tonumber(least)
  local cost, lowered = fixed + math.ceil(price * most / 1000), 0
  if cost > spendable and price > 0 and least < most then
    lowered = math.floor((spendable - fixed) * 1000 / price)
    if lowered >= least then cost = fixed + math.ceil(price * lowered / 1000) end
  end
  -- The price of the lowered output is rounded up, too.
  if cost > spendable then
    local isEnough = fixed + math.ceil(price * least / 1000) <= spendable + others
    return short, string.format('%.0f %.0f %.0f', cost, math.max(0, spendable), isEnough and others or 0)
  end
  return nil, cost, lowered
end

-- Whether the account fills its share of the queue, which always leaves room for the next account. The number of its waiting jobs
-- is estimated from the ratio of all, but one whose jobs run while others' wait has fewer. If no other account surely waits, it may
-- fill nearly the whole queue; a few jobs are never a flood.
local fewWaiting = 16
local function hasItsShare()
  local inQueue = math.max(0, unfinished - beside)
  if waiting <= inQueue then return waiting >= queueLimit - math.floor(queueLimit * math.min(queueShare, 1 - queueShare)) end
  local own = math.min(inQueue * waiting / (waiting + active), maxOwn)
  return own >= math.max(fewWaiting, (queueLimit - (waiting - own)) * queueShare)
end

-- Fills the limits per minute with a job. Most keys have none.
local function fill(limits)
  buckets = buckets or openBuckets(rate, now, {string.match(ARGV[11], '^(%S+) (%S+)$')})
  return buckets.fill(limits)
end

-- Why the key may not join the job of an identical request: it could not send this one itself, by its limits per minute and its
-- money. A job that it joins counts against neither, nor as one of its unfinished ones. Nil if it may.
local function refuseJoining(hold, limits)
  if limits ~= '' then
    local levels, left, tokens = fill(limits)
    if not levels then return answer('rate', left, count, 0, 0, tokens) end
  end
  if budget == false then return answer('unloaded', 'budget') end
  local short, cost = price(hold, true)
  if short then return answer(short, cost, count) end
end

-- Queues a job without a priority, with the key of its state, so that its claimer can start it in the same step.
local function enqueue(job, identity, rest, lowered, state, amount)
  local data = string.sub(identity, 1, -2) .. ',' .. rest
  if lowered > 0 then data = string.sub(data, 1, -2) .. ',"outputLimit":' .. string.format('%.0f', lowered) .. '}' end
  if amount ~= '-' then data = string.sub(data, 1, -2) .. ',"maxCost":' .. amount .. '}' end
  local id = 'job_' .. job
  writeQueuedJob(ARGV[12] .. id, id, data, '0', nowText, 'state', state)
  queued[#queued + 1] = id
end

local function admit(at, state)
  local job, bound, hold, limits, lifetime, deadline, identity, field, value, rest, notAfter, tried =
    unpack(ARGV, at, at + perJob - 1)
  local member = job .. ' ' .. ARGV[2] .. ' ' .. key .. ' ' .. capability
  local idempotency, body, bindingLifetime, replaced = string.match(bound, '^(%S+) (%S+) (%d+) ?(%S*)$')
  local binding = idempotency and prefix .. 'idempotency:' .. idempotency
  local isShared = idempotency and string.sub(idempotency, 1, 7) == 'shared-'
  local isCached = idempotency and string.sub(idempotency, 1, 6) == 'cache-'
  -- A repeat: the client library resent the call after a broken connection. It must neither be refused nor count twice, nor get
  -- another job, even if the job is settled by now: its state outlives its hold. It is not queued here, but by the caller.
  local isRepeat
  if state then isRepeat = redis.call('EXISTS', state) == 1 else isRepeat = redis.call('ZSCORE', KEYS[1], member) end
  if isRepeat then
    local amount, lowered = string.match(redis.call('HGET', reserved, job) or '', '^(%S+) %S+ (%S+)')
    return answer('admitted', '', count, 1, lowered, '', 0, amount)
  end
  if binding then
    -- The name is of the tag, not of the account: the second account to use it has one of its own (see own-binding.ts).
    local other = redis.call('HMGET', binding .. ':' .. ARGV[2], 'job', 'body')
    if not other[1] then other = redis.call('HMGET', binding, 'job', 'body') end
    if other[1] and other[1] ~= job and other[1] ~= replaced then
      return isShared and refuseJoining(hold, limits) or answer(other[2] == body and 'replay' or 'reused', other[1])
    end
  end
  local retryName, retryLifetime, isRetry = string.match(tried, '^(%S+) (%d+) (%d)$')
  if isRetry == '1' then
    local other = redis.call('GET', prefix .. 'retry:' .. retryName)
    if other and other ~= job then return answer('replay', other) end
  end
  if now > tonumber(notAfter) then return answer('late', '', count) end
  if ARGV[8] ~= '' then return answer(ARGV[8], '', count) end
  if hasItsShare() then return answer('queue_share', string.format('%.0f', unfinished), count) end
  if count >= tonumber(ARGV[6]) then return answer('concurrency', '', count) end
  local levels, left, tokens = nil, '', 0
  if limits ~= '' then
    levels, left, tokens = fill(limits)
    if not levels then return answer('rate', left, count, 0, 0, tokens) end
  end
  if budget == false then return answer('unloaded', 'budget') end
  local short, cost, lowered = price(hold)
  if short then return answer(short, cost, count) end
  -- Fairness: a job has no priority only while the queue flows and its account has few jobs. Others get one from the queue, which
  -- keeps their account behind its own jobs (see lines.lua).
  local hasPriority = unfinished >= withoutPriority
  local amount = lowered and string.format('%.0f', cost) or '-'
  lowered = lowered or 0

  -- From here on it is admitted. The first write is one that a full memory refuses, before anything else is written.
  if state then
    redis.call('HSET', state, 'job', identity, 'deadline', deadline, 'readers', ARGV[13])
    if field ~= '' then redis.call('HSET', state, field, value) end
    redis.call('PEXPIRE', state, lifetime)
  end
  -- An answer that is shorter than requested is only for the request that funds were short for.
  if binding and not ((isShared or isCached) and lowered > 0) then
    redis.call('HSET', binding, 'job', job, 'body', body)
    redis.call('PEXPIRE', binding, bindingLifetime)
  end
  if retryName then redis.call('SET', prefix .. 'retry:' .. retryName, job, 'PX', retryLifetime) end
  count, unfinished, held = count + 1, unfinished + 1, held + cost
  waiting, maxOwn = waiting + 1, maxOwn + 1
  if budget then budget.held = budget.held + cost end
  if levels then buckets.keep(levels) end
  if amount ~= '-' or tokens > 0 then
    local counted = limits ~= '' and ARGV[11] .. ' ' .. limits or ''
    reservations[#reservations + 1] = job
    reservations[#reservations + 1] = string.format('%s %.0f %.0f %s %s', amount, tokens, lowered, period, counted)
  end
  runningNow[#runningNow + 1], runningNow[#runningNow + 2] = nowText, job
  holds[#holds + 1], holds[#holds + 2] = firstLook, member
  local isQueued = rest ~= '' and not hasPriority
  if isQueued then enqueue(job, identity, rest, lowered, state, amount) end
  local terms = hasPriority and (money[6] or '1') .. ' ' .. (money[7] or '0') or 0
  return answer('admitted', '', count, terms, string.format('%.0f', lowered), left, isQueued and 1 or 0, amount)
end

local replies = {}
for at = firstJob, #ARGV, perJob do
  local index = #replies + 1
  local ok, reply = pcall(admit, at, KEYS[index + 1])
  if not ok then
    local message, refused = refusal(reply)
    -- The rest of the jobs admitted before is yet to be written.
    if refused and #holds == 0 then return refused end
    reply = answer('error', message)
  end
  replies[index] = reply
end
if #holds == 0 then return replies end

redis.call('ZADD', KEYS[1], unpack(holds))
redis.call('ZADD', running, unpack(runningNow))
local fields = {'n:' .. capability, string.format('%.0f', unfinished)}
if held > tonumber(money[3] or 0) then fields[#fields + 1], fields[#fields + 2] = 'held', string.format('%.0f', held) end
redis.call('HSET', account, unpack(fields))
if budget then
  redis.call('HSET', budgetKey, 'period', period, 'spent', string.format('%.0f', budget.spent),
    'held', string.format('%.0f', budget.held), 'from', periodStart)
end
if buckets then buckets.write() end
if #reservations > 0 then redis.call('HSET', reserved, unpack(reservations)) end
if #queued > 0 then pushQueuedJobs(ARGV[12] .. 'wait', ARGV[12] .. 'marker', queued) end
return replies
