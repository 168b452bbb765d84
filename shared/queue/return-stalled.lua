-- Returns jobs whose workers were lost to their queue, as the next ones: BullMQ's moveStalledJobsToWait, which asks for each
-- claimed job whether its lock exists. This reads many locks in one command; and a lock of a worker that is known to be dead is
-- worth nothing, so that locks need not be short.
-- KEYS[1] the check (string): set while another has just been   KEYS[2] active (list)   KEYS[3] wait (list)
-- KEYS[4] marker (sorted set)   KEYS[5] workers (sorted set, by until when they are alive)   KEYS[6] claimed jobs at the last check by
-- BullMQ, which a worker of the release before makes (set)
-- ARGV[1] start of the jobs' keys   ARGV[2] ms until the next check   ARGV[3] how often a job may stall
-- Returns the number of jobs.
if not redis.call('SET', KEYS[1], '1', 'PX', ARGV[2], 'NX') then return 0 end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local dead, stalled = {}, 0
-- Once the last of them is gone, nobody else would remove it.
redis.call('DEL', KEYS[6])
for _, worker in ipairs(redis.call('ZRANGEBYSCORE', KEYS[5], '-inf', string.format('%.0f', now))) do dead[worker] = true end

-- lock: its token, which begins with the worker that claimed the job; false if it has expired
local function examine(id, lock)
  if lock and not dead[string.match(lock, '^(.*):%d+$')] then return end
  local key = ARGV[1] .. id
  redis.call('LREM', KEYS[2], 1, id)
  redis.call('DEL', key .. ':lock')
  if redis.call('HINCRBY', key, 'stc', 1) > tonumber(ARGV[3]) then
    redis.call('HSET', key, 'defa', 'job stalled more than allowable limit')
  end
  redis.call('RPUSH', KEYS[3], id)
  stalled = stalled + 1
end

local active = redis.call('LRANGE', KEYS[2], 0, -1)
-- In chunks: Lua passes at most a few thousand values.
for first = 1, #active, 1000 do
  local ids, locks = {unpack(active, first, math.min(first + 999, #active))}, {}
  for position, id in ipairs(ids) do locks[position] = ARGV[1] .. id .. ':lock' end
  local tokens = redis.call('MGET', unpack(locks))
  for position, id in ipairs(ids) do examine(id, tokens[position]) end
end
if stalled > 0 then redis.call('ZADD', KEYS[4], '0', '0') end
return stalled
