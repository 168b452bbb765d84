-- Enqueues a job, once. Preceded by lines.lua and add-job.lua.
-- KEYS[1] the job (hash)   KEYS[2] wait (list)   KEYS[3] prioritized (sorted set)   KEYS[4] marker (sorted set)
-- KEYS[5] priority counter
-- ARGV[1] its id in the queue   ARGV[2] its data   ARGV[3] its account if it gets a priority; '': before all that have one
-- ARGV[4] '' or the time in ms after which it must not be queued: the requester has given up by then
-- ARGV[5] start of the queue's keys   ARGV[6] start of the jobs' keys
-- Returns queued; there (already in the queue); late.
local key, wait, marker, counter = KEYS[1], KEYS[2], KEYS[4], KEYS[5]
local id, data, account, notAfter = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local nowText = string.format('%.0f', now)
if redis.call('EXISTS', key) == 1 then return 'there' end
if notAfter and now > notAfter then return 'late' end
if account == '' then
  writeQueuedJob(key, id, data, '0', nowText)
  pushQueuedJobs(wait, marker, {id})
  return 'queued'
end
local priority = openLines(ARGV[5], ARGV[6]).join(account, id, counter, time)
writeQueuedJob(key, id, data, priority, nowText, 'account', account)
redis.call('ZADD', marker, '0', '0')
return 'queued'
