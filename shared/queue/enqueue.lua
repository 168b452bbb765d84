-- Enqueues jobs of one queue, each once, separately and in order.
-- Preceded by refusal.lua, keys-in-line.lua, lines.lua, flex-lane.lua, high-lane.lua and add-job.lua.
-- KEYS[1] wait (list)   KEYS[2] prioritized (sorted set)   KEYS[3] marker (sorted set)
-- Then per job: the job (hash) and, if ARGV[3] is 1, its state (hash).
-- ARGV[1] start of the queue's keys   ARGV[2] start of the jobs' keys
-- ARGV[3] 1 if the jobs' states are on this node, so that the claim begins the jobs; else 0
-- Then eight per job, and its state's fields:
--   1 its id in the queue   2 its data   3 its account if it gets a priority; '': before all that have one
--   4 '' or the time in ms after which it must not be queued: the requester has given up by then
--   5 its work, by which its account's next job follows
--   6 '' or, for a job of low priority, after how many ms it joins the others, and how many such jobs may wait, of all accounts and
--     of its own: 'ms most share'; 'high' for one of high priority
--   7 its API key, if its account shares its turns between keys; else ''
--   8 how many values follow: of the state to make, if it is made here, its lifetime in ms, fields and their values; else 0
-- Returns for each job: queued; there (already in the queue); late; full (too many of low priority wait); share (of its account);
-- or 'error <message>' if this job failed.
local wait, marker = KEYS[1], KEYS[3]
local root, jobs, hasStates = ARGV[1], ARGV[2], ARGV[3] == '1'
local firstKey, keysPerJob = 4, hasStates and 2 or 1
local firstJob, perJob = 4, 8
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local nowText = string.format('%.0f', now)

local function enqueue(at, key, state)
  local id, data, account, notAfter, work, lane, apiKey, given = unpack(ARGV, at, at + perJob - 1)
  if redis.call('EXISTS', key) == 1 then return 'there' end
  notAfter = tonumber(notAfter)
  if notAfter and now > notAfter then return 'late' end
  apiKey = apiKey ~= '' and apiKey
  local joinsAfter, most, share = string.match(lane, '^(%d+) (%d+) (%d+)$')
  if joinsAfter then
    local flex = openFlexLane(root, jobs)
    local tooMany = flex.add(account, id, time, now + joinsAfter, tonumber(most), tonumber(share), apiKey)
    if tooMany then return tooMany end
  end
  -- One that is there is older, or has ended.
  if given ~= '0' and redis.call('EXISTS', state) == 0 then
    local first = at + perJob
    redis.call('HSET', state, unpack(ARGV, first + 1, first + given - 1))
    redis.call('PEXPIRE', state, ARGV[first])
  end
  local more = state and {'state', state} or {}
  if account == '' then
    writeQueuedJob(key, id, data, '0', nowText, unpack(more))
    pushQueuedJobs(wait, marker, {id})
    return 'queued'
  end
  if apiKey then more[#more + 1], more[#more + 2] = 'key', apiKey end
  if joinsAfter then
    writeQueuedJob(key, id, data, '0', nowText, 'account', account, 'work', work, 'lane', 'flex', unpack(more))
  elseif lane == 'high' then
    -- Only claims need the share.
    openHighLane(root, jobs, 1).join(account, id, time, apiKey)
    writeQueuedJob(key, id, data, '0', nowText, 'high', account, 'work', work, unpack(more))
  else
    local priority = openLines(root, jobs).join(account, id, time, apiKey)
    writeQueuedJob(key, id, data, priority, nowText, 'account', account, 'work', work, unpack(more))
  end
  redis.call('ZADD', marker, '0', '0')
  return 'queued'
end

local replies = {}
local at = firstJob
while at <= #ARGV do
  local key = firstKey + #replies * keysPerJob
  local ok, reply = pcall(enqueue, at, KEYS[key], hasStates and KEYS[key + 1])
  if not ok then
    local message, refused = refusal(reply)
    if refused then return refused end
    reply = 'error ' .. message
  end
  replies[#replies + 1] = reply
  -- Microseconds order the jobs of a line, and this whole call has one time. Each job takes it longer than one.
  time[2] = time[2] + 1
  at = at + perJob + ARGV[at + perJob - 1]
end
return replies
