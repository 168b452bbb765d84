-- Reads the numbers of the last frames of jobs that readers can have. Loaded after journaled.lua.
-- KEYS job states (hashes)   ARGV the jobs' ids
-- Returns for each its number, or 0 if there is no such job.
local replies = {}
for index, key in ipairs(KEYS) do
  local state = redis.call('HMGET', key, 'seq', 'journal')
  local seq = tonumber(state[1] or 0)
  local count = 0
  if state[2] then count = select(2, journaledOf(ARGV[index], state[2], seq)) end
  replies[index] = seq + count
end
return replies
