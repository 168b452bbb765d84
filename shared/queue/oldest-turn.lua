-- When the oldest of the next jobs with a turn was queued, in ms; '' when there is none.
-- KEYS[1] the jobs that wait with a priority (BullMQ's sorted set)
-- ARGV[1] how many are looked at   ARGV[2] what a job's id follows in the key of its hash, under the same hash tag
local oldest = ''
for _, job in ipairs(redis.call('ZRANGE', KEYS[1], 0, ARGV[1] - 1)) do
  local added = redis.call('HGET', ARGV[2] .. job, 'timestamp')
  if added and (oldest == '' or tonumber(added) < tonumber(oldest)) then oldest = added end
end
return oldest
