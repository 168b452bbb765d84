-- Stands before the scripts that put jobs into queues: BullMQ's `add`, as much of it as is read here.

-- The job itself (hash). Nothing is kept of it: its own state says how it ended, and outlives it. Completed jobs go with their claim;
-- one that fails because no worker could hold on to it goes by its options.
-- Further values are further fields.
local function writeQueuedJob(key, id, data, priority, now, ...)
  local options = '{"jobId":"' .. id .. '","removeOnFail":true,"attempts":0'
  if priority ~= '0' then options = options .. ',"priority":' .. priority end
  redis.call('HSET', key, 'name', 'job', 'data', data, 'opts', options .. '}', 'timestamp', now, 'delay', '0', 'priority', priority, ...)
end

-- Jobs without a priority, each behind those that were put there before.
local function pushQueuedJobs(wait, marker, ids)
  redis.call('LPUSH', wait, unpack(ids))
  redis.call('ZADD', marker, '0', '0')
end
