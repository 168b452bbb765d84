-- Puts a job into its queue, once: BullMQ's `add`, as much of it as is read here.
-- KEYS[1] the job (hash)   KEYS[2] wait (list)   KEYS[3] prioritized (sorted set)   KEYS[4] marker (sorted set)
-- KEYS[5] priority counter
-- ARGV[1] its id in the queue   ARGV[2] its data   ARGV[3] its options   ARGV[4] its priority, or 0: before all that have one
-- ARGV[5] '' or when it must not be done any more, in ms: whoever asks for it has given it up by then
-- Returns queued; there (it is in the queue already); late.
local key, id, priority, notAfter = KEYS[1], ARGV[1], tonumber(ARGV[4]), tonumber(ARGV[5])
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
if redis.call('EXISTS', key) == 1 then return 'there' end
if notAfter and now > notAfter then return 'late' end
redis.call('HSET', key, 'name', 'job', 'data', ARGV[2], 'opts', ARGV[3], 'timestamp', string.format('%.0f', now), 'delay', '0',
  'priority', ARGV[4])
if priority == 0 then
  redis.call('LPUSH', KEYS[2], id)
else
  -- BullMQ's score: the priority in units of 2^32, and a counter that keeps equal ones in order.
  local score = priority * 2 ^ 32 + redis.call('INCR', KEYS[5]) % 2 ^ 32
  redis.call('ZADD', KEYS[3], string.format('%.0f', score), id)
end
redis.call('ZADD', KEYS[4], '0', '0')
return 'queued'
