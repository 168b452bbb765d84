-- Enqueues a job, once. Loaded after add-job.lua.
-- KEYS[1] the job (hash)   KEYS[2] wait (list)   KEYS[3] prioritized (sorted set)   KEYS[4] marker (sorted set)
-- KEYS[5] priority counter
-- ARGV[1] its id in the queue   ARGV[2] its data   ARGV[3] its priority, or 0: before all that have one
-- ARGV[4] '' or the time in ms after which it must not be queued: the requester has given up by then
-- Returns queued; there (already in the queue); late.
local key, wait, prioritized, marker, counter = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local id, data, priority, notAfter = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
if redis.call('EXISTS', key) == 1 then return 'there' end
if notAfter and now > notAfter then return 'late' end
writeQueuedJob(key, id, data, ARGV[3], string.format('%.0f', now))
if priority == 0 then
  pushQueuedJobs(wait, marker, {id})
  return 'queued'
end
-- BullMQ's score: the priority in units of 2^32, plus a counter that keeps equal ones in order.
local score = priority * 2 ^ 32 + redis.call('INCR', counter) % 2 ^ 32
redis.call('ZADD', prioritized, string.format('%.0f', score), id)
redis.call('ZADD', marker, '0', '0')
return 'queued'
