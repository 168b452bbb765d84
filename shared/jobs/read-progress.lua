-- Reads how far jobs are, for readers that have heard nothing for a while.
-- KEYS job states (hashes)
-- Returns for each: '' if there is no such job, else its last committed sequence number, and after a space '1' if it has ended.
local replies = {}
for index, key in ipairs(KEYS) do
  local state = redis.pcall('HMGET', key, 'deadline', 'terminal', 'seq')
  if state.err then replies[index] = 'error ' .. state.err
  elseif not state[1] then replies[index] = ''
  else replies[index] = (state[3] or '0') .. (state[2] and ' 1' or '') end
end
return replies
