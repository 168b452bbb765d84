-- Enqueues a job, once. Preceded by lines.lua, flex-lane.lua and add-job.lua.
-- KEYS[1] the job (hash)   KEYS[2] wait (list)   KEYS[3] prioritized (sorted set)   KEYS[4] marker (sorted set)
-- KEYS[5] the job's state (hash), if it is on this node: the claim begins the job
-- ARGV[1] its id in the queue   ARGV[2] its data   ARGV[3] its account if it gets a priority; '': before all that have one
-- ARGV[4] '' or the time in ms after which it must not be queued: the requester has given up by then
-- ARGV[5] start of the queue's keys   ARGV[6] start of the jobs' keys   ARGV[7] its work, by which its account's next job follows
-- ARGV[8] '' or, for a job of low priority, after how many ms it joins the others, and how many such jobs may wait, of all accounts and
-- of its own: 'ms most share'
-- ARGV[9…] the state to make, if it is made here: its lifetime in ms, fields and their values
-- Returns queued; there (already in the queue); late; full (too many of low priority wait).
local key, wait, marker, state = KEYS[1], KEYS[2], KEYS[4], KEYS[5]
local id, data, account, notAfter = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local nowText = string.format('%.0f', now)
if redis.call('EXISTS', key) == 1 then return 'there' end
if notAfter and now > notAfter then return 'late' end
local joinsAfter, most, share = string.match(ARGV[8], '^(%d+) (%d+) (%d+)$')
if joinsAfter then
  local flex = openFlexLane(ARGV[5], ARGV[6])
  if not flex.add(account, id, time, now + joinsAfter, tonumber(most), tonumber(share)) then return 'full' end
end
-- One that is there is older, or has ended.
if ARGV[9] and redis.call('EXISTS', state) == 0 then
  redis.call('HSET', state, unpack(ARGV, 10))
  redis.call('PEXPIRE', state, ARGV[9])
end
local begun = state and {'state', state} or {}
if account == '' then
  writeQueuedJob(key, id, data, '0', nowText, unpack(begun))
  pushQueuedJobs(wait, marker, {id})
  return 'queued'
end
if joinsAfter then
  writeQueuedJob(key, id, data, '0', nowText, 'account', account, 'work', ARGV[7], 'lane', 'flex', unpack(begun))
  redis.call('ZADD', marker, '0', '0')
  return 'queued'
end
local priority = openLines(ARGV[5], ARGV[6]).join(account, id, time)
writeQueuedJob(key, id, data, priority, nowText, 'account', account, 'work', ARGV[7], unpack(begun))
redis.call('ZADD', marker, '0', '0')
return 'queued'
