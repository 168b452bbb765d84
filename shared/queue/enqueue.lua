-- Enqueues a job, once. Preceded by keys-in-line.lua, lines.lua, flex-lane.lua, high-lane.lua and add-job.lua.
-- KEYS[1] the job (hash)   KEYS[2] wait (list)   KEYS[3] prioritized (sorted set)   KEYS[4] marker (sorted set)
-- KEYS[5] the job's state (hash), if it is on this node: the claim begins the job
-- ARGV[1] its id in the queue   ARGV[2] its data   ARGV[3] its account if it gets a priority; '': before all that have one
-- ARGV[4] '' or the time in ms after which it must not be queued: the requester has given up by then
-- ARGV[5] start of the queue's keys   ARGV[6] start of the jobs' keys   ARGV[7] its work, by which its account's next job follows
-- ARGV[8] '' or, for a job of low priority, after how many ms it joins the others, and how many such jobs may wait, of all accounts and
-- of its own: 'ms most share'; 'high' for one of high priority
-- ARGV[9] its API key, if its account shares its turns between keys; else ''
-- ARGV[10…] the state to make, if it is made here: its lifetime in ms, fields and their values
-- Returns queued; there (already in the queue); late; full (too many of low priority wait); share (of its account).
local key, wait, marker, state = KEYS[1], KEYS[2], KEYS[4], KEYS[5]
local id, data, account, notAfter = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local nowText = string.format('%.0f', now)
if redis.call('EXISTS', key) == 1 then return 'there' end
if notAfter and now > notAfter then return 'late' end
local apiKey = ARGV[9] ~= '' and ARGV[9]
local joinsAfter, most, share = string.match(ARGV[8], '^(%d+) (%d+) (%d+)$')
if joinsAfter then
  local flex = openFlexLane(ARGV[5], ARGV[6])
  local tooMany = flex.add(account, id, time, now + joinsAfter, tonumber(most), tonumber(share), apiKey)
  if tooMany then return tooMany end
end
-- One that is there is older, or has ended.
if ARGV[10] and redis.call('EXISTS', state) == 0 then
  redis.call('HSET', state, unpack(ARGV, 11))
  redis.call('PEXPIRE', state, ARGV[10])
end
local more = state and {'state', state} or {}
if account == '' then
  writeQueuedJob(key, id, data, '0', nowText, unpack(more))
  pushQueuedJobs(wait, marker, {id})
  return 'queued'
end
if apiKey then more[#more + 1], more[#more + 2] = 'key', apiKey end
if joinsAfter then
  writeQueuedJob(key, id, data, '0', nowText, 'account', account, 'work', ARGV[7], 'lane', 'flex', unpack(more))
  redis.call('ZADD', marker, '0', '0')
  return 'queued'
end
if ARGV[8] == 'high' then
  -- Only claims need the share.
  openHighLane(ARGV[5], ARGV[6], 1).join(account, id, time, apiKey)
  writeQueuedJob(key, id, data, '0', nowText, 'high', account, 'work', ARGV[7], unpack(more))
  redis.call('ZADD', marker, '0', '0')
  return 'queued'
end
local priority = openLines(ARGV[5], ARGV[6]).join(account, id, time, apiKey)
writeQueuedJob(key, id, data, priority, nowText, 'account', account, 'work', ARGV[7], unpack(more))
redis.call('ZADD', marker, '0', '0')
return 'queued'
