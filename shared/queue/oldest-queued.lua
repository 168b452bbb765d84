-- Returns when the oldest job with a priority was queued, in ms; '' if there is none.
-- KEYS[1] the jobs waiting with a priority (BullMQ's sorted set)   KEYS[2] accounts by the length of their lines (sorted set)
-- ARGV[1] number of jobs, and of the longest lines, examined   ARGV[2] start of the jobs' keys   ARGV[3] start of the queue's keys
local prioritized, lines, last, jobs, root = KEYS[1], KEYS[2], ARGV[1] - 1, ARGV[2], ARGV[3]
local oldest = ''
local function note(added)
  if added and (oldest == '' or tonumber(added) < tonumber(oldest)) then oldest = added end
end
for _, job in ipairs(redis.call('ZRANGE', prioritized, 0, last)) do note(redis.call('HGET', jobs .. job, 'timestamp')) end
-- Newest-first leaves old jobs behind those. A line may begin with a job that another tool has removed.
if oldest == '' then return oldest end
for _, account in ipairs(redis.call('ZREVRANGE', lines, 0, last)) do
  local first = redis.call('ZRANGE', root .. 'line:' .. account, 0, 0)[1]
  if first then note(redis.call('HGET', jobs .. first, 'timestamp')) end
end
return oldest
