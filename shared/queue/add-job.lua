-- Prepended to the scripts that enqueue jobs: BullMQ's `add`, limited to the fields read here.

-- The job itself (hash). Nothing of it is kept: the job's own state outlives it and records the end. Completed jobs are removed
-- with their claim; `removeOnFail` removes a job that fails because no worker could hold on to it.
-- Further values are further fields.
local function writeQueuedJob(key, id, data, priority, now, ...)
  local options = '{"jobId":"' .. id .. '","removeOnFail":true,"attempts":0'
  if priority ~= '0' then options = options .. ',"priority":' .. priority end
  redis.call('HSET', key, 'name', 'job', 'data', data, 'opts', options .. '}', 'timestamp', now, 'delay', '0', 'priority', priority, ...)
end

-- Jobs without a priority, each behind those already in the list.
local function pushQueuedJobs(wait, marker, ids)
  redis.call('LPUSH', wait, unpack(ids))
  redis.call('ZADD', marker, '0', '0')
end
