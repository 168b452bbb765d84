-- Reads how far jobs are, for readers that have heard nothing for a while, and for the sweeper. Loaded after lease.lua.
-- KEYS job states (hashes), those of a tag one after the other
-- Returns for each: '' if there is no such job, else its last committed sequence number, '1' if it has ended or '0', its deadline,
-- and until when an attempt owns it, '0' unless its vendor is silent.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local replies = {}

-- An entry of the tag's leases tells all of its job while the lease lives.
local function readTag(leases, jobs, first)
  local entries = redis.pcall('HMGET', leases, unpack(jobs))
  for position = 1, #jobs do
    local index = first + position - 1
    local entry = not entries.err and entries[position] or ''
    local owned, seq, deadline = string.match(entry, '^(%d+) %d+ (%d+) (%d+)$')
    if owned and tonumber(owned) > now then
      replies[index] = table.concat({seq, '0', deadline, owned}, ' ')
    else
      local state = redis.pcall('HMGET', KEYS[index], 'deadline', 'terminal', 'seq')
      if state.err then replies[index] = 'error ' .. state.err
      elseif not state[1] then replies[index] = ''
      else replies[index] = table.concat({state[3] or '0', state[2] and '1' or '0', state[1], owned or '0'}, ' ') end
    end
  end
end

eachTag(readTag)
return replies
