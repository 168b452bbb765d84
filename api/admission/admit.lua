-- Admits a job or says what stands against it. What is refused changes nothing.
-- KEYS[1] holds of the account's tag (sorted set)
-- KEYS[2] job state (hash), to be made with the admission; not given on a Cluster, where it lies on another node
-- All other keys lie in the same tag: ARGV[1] and their names make them (see shared/keys.ts).
-- ARGV[1] prefix of the tag's keys   ARGV[2] job id   ARGV[3] account   ARGV[4] API key id   ARGV[5] capability
-- ARGV[6] revision of the API key as the caller was read   ARGV[7] unfinished jobs the key may have
-- ARGV[8] now in ms   ARGV[9] when the sweeper looks at the hold first, in ms
-- ARGV[10] '' or why new work is shed (queue length and memory are known to the caller: they lie under other tags)
-- ARGV[11] '' or hash of the idempotency key   ARGV[12] hash of the body   ARGV[13] lifetime of the binding in ms
-- ARGV[14] '<jobs> <time>': unfinished jobs of an account from which on its next one has a turn (0 unless the queue flows),
--          and the highest turn that workers have taken
-- ARGV[15] what the job may cost: 'fixed price tokens least', in nano-dollars, nano-dollars for 1000 tokens of the answer,
--          the most of them, and the least it may be lowered to; '' where the model has no price, '?' where nobody has
--          reckoned it
-- ARGV[16] '' or the key's budget: 'nano-dollars period'
-- ARGV[17] '' or limits for a minute: 'requests tokens model-requests model-tokens', 0 for none, and the job's 'tokens model',
--          0 where no limit counts them, and '-' where none is the model's
-- ARGV[18] lifetime of the state in ms   ARGV[19…] its fields and values
-- Answers {verdict, job id or detail, unfinished jobs of the key, turn (0: none), tokens it was lowered to
-- (0: not), what is left of the limits of the key: 'requests reset-ms tokens reset-ms' or ''}. Verdicts:
--   unknown      the flag is not in Redis: load it from the database and ask again
--   changed      the key has been changed since the caller was read: read it again and ask again
--   revoked      the key is not valid any more
--   unloaded     the account, or what the key has spent, is not in Redis: load it and ask again
--   suspended    the account is
--   replay, job  the idempotency key is bound to this job, with the same body
--   reused, job  …with another body
--   shed, queue_full   refused for ARGV[10]
--   concurrency  the key has as many unfinished jobs as it may
--   rate, 'requests|tokens limit wait-ms asked model'   the key has had as much as it may for now
--   unasked      what the job may cost matters: reckon it and ask again
--   unpriced     the job costs nobody knows what, and the account, or the key, may not spend without limit
--   balance, budget   what is left does not pay for it
--   admitted     the job is held
local prefix, job, now = ARGV[1], ARGV[2], tonumber(ARGV[8])
local account, running = prefix .. 'account:' .. ARGV[3], prefix .. 'running:' .. ARGV[4]
local member = job .. ' ' .. ARGV[3] .. ' ' .. ARGV[4] .. ' ' .. ARGV[5]

local flag = redis.call('GET', prefix .. 'key:' .. ARGV[4])
if not flag then return {'unknown', '', 0, 0, 0, ''} end
if flag == '0' then return {'revoked', '', 0, 0, 0, ''} end
if flag ~= ARGV[6] then return {'changed', '', 0, 0, 0, ''} end
local money = redis.call('HMGET', account, 'credit', 'charged', 'held', 'suspended', 'n:' .. ARGV[5], 'last:' .. ARGV[5])
if not money[1] then return {'unloaded', 'account', 0, 0, 0, ''} end
if money[4] == '1' then return {'suspended', '', 0, 0, 0, ''} end

local binding = prefix .. 'idempotency:' .. ARGV[11]
if ARGV[11] ~= '' then
  local bound = redis.call('HMGET', binding, 'job', 'body')
  if bound[1] and bound[1] ~= job then
    return {bound[2] == ARGV[12] and 'replay' or 'reused', bound[1], 0, 0, 0, ''}
  end
end

local count = redis.call('ZCARD', running)
-- A repeat: the client library sent the call again after a broken connection. It must neither be refused nor count twice, also
-- where the job, which may be sent right behind its admission, is settled by now: its state stays longer than its hold.
local isRepeat
if KEYS[2] then isRepeat = redis.call('EXISTS', KEYS[2]) == 1 else isRepeat = redis.call('ZSCORE', KEYS[1], member) end
if isRepeat then
  local lowered = string.match(redis.call('HGET', prefix .. 'reserved', job) or '', '^%S+ %S+ (%S+)')
  return {'admitted', '', count, tonumber(money[6] or 0), tonumber(lowered or 0), ''}
end
if ARGV[10] ~= '' then return {ARGV[10], '', count, 0, 0, ''} end
if count >= tonumber(ARGV[7]) then return {'concurrency', '', count, 0, 0, ''} end

-- Rates: a bucket for each limit holds what was taken and runs empty evenly within a minute. Its field is '<what> <model>'.
local rate, taken, left, tokens, model = prefix .. 'rate:' .. ARGV[4], {}, '', 0, ''
if ARGV[17] ~= '' then
  local words = {}
  for word in string.gmatch(ARGV[17], '%S+') do words[#words + 1] = word end
  tokens, model = tonumber(words[5]), words[6]
  local buckets = {
    {'requests', tonumber(words[1]), 1, ''}, {'tokens', tonumber(words[2]), tokens, ''},
    {'requests', tonumber(words[3]), 1, model}, {'tokens', tonumber(words[4]), tokens, model},
  }
  for index, bucket in ipairs(buckets) do
    local what, limit, asked, of = unpack(bucket)
    if limit > 0 then
      local field = what .. ' ' .. of
      local used, at = string.match(redis.call('HGET', rate, field) or '0 0', '^(%S+) (%S+)$')
      -- Processes' clocks differ: time does not go back. Under a limit that was lowered two minutes of it are owed at most.
      local time = math.max(now, tonumber(at))
      local level = math.max(0, math.min(tonumber(used), 2 * limit) - (time - tonumber(at)) * limit / 60000)
      -- What is more than a minute's worth may pass when the bucket is empty: it would never fit otherwise.
      local taking = math.min(asked, limit)
      if level + taking > limit then
        local wait = math.ceil((level + taking - limit) * 60000 / limit)
        return {'rate', what .. ' ' .. limit .. ' ' .. wait .. ' ' .. asked .. ' ' .. of, count, 0, 0, ''}
      end
      taken[#taken + 1] = field
      taken[#taken + 1] = string.format('%.3f %.0f', level + taking, time)
      if index <= 2 then
        left = left .. string.format('%.0f %.0f ', math.floor(limit - level - taking), (level + taking) * 60000 / limit)
      end
    elseif index <= 2 then
      left = left .. '- - '
    end
  end
end

-- Money: what the job may cost is held of the balance and of the key's budget.
local spendable, short, lowered, cost = math.huge, '', 0, 0
if money[1] ~= '' then
  spendable, short = tonumber(money[1]) - tonumber(money[2] or 0) - tonumber(money[3] or 0), 'balance'
end
local budgetKey, period, budget = prefix .. 'budget:' .. ARGV[4], '-', nil
if ARGV[16] ~= '' then
  local most
  most, period = string.match(ARGV[16], '^(%S+) (%S+)$')
  budget = redis.call('HMGET', budgetKey, 'period', 'spent', 'held')
  if not budget[1] then return {'unloaded', 'budget', 0, 0, 0, ''} end
  -- A new period begins with nothing spent; what is still held of an earlier one was that one's. A process whose clock is
  -- late does not bring the last one back.
  local isLate = budget[1] > period and string.match(budget[1], '^%a+') == string.match(period, '^%a+')
  if isLate then period = budget[1] elseif budget[1] ~= period then budget = {period, 0, 0} end
  local remaining = tonumber(most) - tonumber(budget[2]) - tonumber(budget[3])
  if remaining < spendable then spendable, short = remaining, 'budget' end
end
local isPaid = short ~= ''
if isPaid then
  if ARGV[15] == '?' then return {'unasked', '', 0, 0, 0, ''} end
  if ARGV[15] == '' then return {'unpriced', '', count, 0, 0, ''} end
  local fixed, price, most, least = string.match(ARGV[15], '^(%S+) (%S+) (%S+) (%S+)$')
  fixed, price, most, least = tonumber(fixed), tonumber(price), tonumber(most), tonumber(least)
  cost = fixed + math.ceil(price * most / 1000)
  if cost > spendable and price > 0 and least < most then
    lowered = math.floor((spendable - fixed) * 1000 / price)
    if lowered >= least then cost = fixed + math.ceil(price * lowered / 1000) end
  end
  -- The price of the lowered answer is rounded up, too.
  if cost > spendable then return {short, string.format('%.0f %.0f', cost, math.max(0, spendable)), count, 0, 0, ''} end
end

-- Fairness (start-time fair queueing): a job goes without a turn only while the queue flows and its account has few; else its
-- turn is after that of the account's last one, and not before those that workers take now.
local unfinished, turn = tonumber(money[5] or 0), 0
local most, time = string.match(ARGV[14], '^(%S+) (%S+)$')
if unfinished >= tonumber(most) then
  time = tonumber(time)
  -- Jobs that were cancelled while they waited had turns, too, which must not set back those that come after them. (Of one
  -- that is quick and few the last turn may be ahead by what the time is late.)
  local furthest = time + unfinished + 256
  turn = math.max(time, math.min(tonumber(money[6] or 0), furthest)) + 1
end

redis.call('ZADD', running, now, job)
redis.call('ZADD', KEYS[1], ARGV[9], member)
local fields = {'n:' .. ARGV[5], string.format('%.0f', unfinished + 1)}
if turn > 0 then
  fields[3], fields[4] = 'last:' .. ARGV[5], string.format('%.0f', turn)
end
if cost > 0 then
  fields[#fields + 1] = 'held'
  fields[#fields + 1] = string.format('%.0f', tonumber(money[3] or 0) + cost)
end
redis.call('HSET', account, unpack(fields))
if budget then
  redis.call('HSET', budgetKey, 'period', period, 'spent', string.format('%.0f', tonumber(budget[2])),
    'held', string.format('%.0f', tonumber(budget[3]) + cost))
end
if #taken > 0 then
  redis.call('HSET', rate, unpack(taken))
  redis.call('PEXPIRE', rate, 180000)
end
if isPaid or tokens > 0 then
  local amount = isPaid and string.format('%.0f', cost) or '-'
  local reservation = string.format('%s %.0f %.0f %s %s', amount, tokens, lowered, period, ARGV[17])
  redis.call('HSET', prefix .. 'reserved', job, reservation)
end
if ARGV[11] ~= '' then
  redis.call('HSET', binding, 'job', job, 'body', ARGV[12])
  redis.call('PEXPIRE', binding, ARGV[13])
end
if KEYS[2] then
  redis.call('HSET', KEYS[2], unpack(ARGV, 19))
  redis.call('PEXPIRE', KEYS[2], ARGV[18])
end
return {'admitted', '', count + 1, turn, lowered, left}
