-- Returns when the oldest of the next jobs with a priority was queued, in ms; '' if there is none.
-- KEYS[1] the jobs waiting with a priority (BullMQ's sorted set)
-- ARGV[1] number of jobs examined   ARGV[2] prefix of the key of a job's hash, under the same hash tag
local oldest = ''
for _, job in ipairs(redis.call('ZRANGE', KEYS[1], 0, ARGV[1] - 1)) do
  local added = redis.call('HGET', ARGV[2] .. job, 'timestamp')
  if added and (oldest == '' or tonumber(added) < tonumber(oldest)) then oldest = added end
end
return oldest
