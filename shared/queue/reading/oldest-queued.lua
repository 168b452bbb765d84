-- Returns when the oldest job with a priority was queued, in ms; '' if there is none.
-- KEYS[1] the jobs waiting with a priority (BullMQ's sorted set)
-- ARGV[1] number of jobs, and of the longest lines, examined   ARGV[2] start of the jobs' keys   ARGV[3] start of the queue's keys
local prioritized, last, jobs, root = KEYS[1], ARGV[1] - 1, ARGV[2], ARGV[3]
local oldest = ''
local function note(added)
  if added and (oldest == '' or tonumber(added) < tonumber(oldest)) then oldest = added end
end
local function noteFirst(lowest)
  local first = redis.call('ZRANGEBYSCORE', prioritized, lowest, '+inf', 'LIMIT', 0, last + 1)
  for _, job in ipairs(first) do note(redis.call('HGET', jobs .. job, 'timestamp')) end
  return first[1]
end
-- Newest-first leaves old jobs behind those. A line may begin with a job that another tool has removed, or with a newer one that has
-- the place of its oldest (see makeFirst in lines.lua).
local function noteLines(root)
  for _, account in ipairs(redis.call('ZREVRANGE', root .. 'lines', 0, last)) do
    local first, place = unpack(redis.call('ZRANGE', root .. 'line:' .. account, 0, 0, 'WITHSCORES'))
    local added = first and redis.call('HGET', jobs .. first, 'timestamp')
    note(added)
    note(added and string.format('%.0f', math.floor(place / 1000)))
  end
end
local first = noteFirst('-inf')
if not first then return oldest end
noteLines(root)
-- Jobs of high priority precede the others; see high-lane.lua.
local above = 4294967296
if tonumber(redis.call('ZSCORE', prioritized, first)) < above then
  noteFirst(above)
  noteLines(root .. 'high:')
end
return oldest
