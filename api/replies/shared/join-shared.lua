-- Makes a process a sharer of a job that runs: another request of it waits for the job's answer. It becomes a reader, too.
-- Loaded after journaled.lua.
-- KEYS[1] job state (hash)
-- ARGV[1] reader's process id   ARGV[2] number of this call, higher than those of the process's earlier ones
-- ARGV[3] '1' if the job goes on even if all its readers leave
-- Returns 1, or 0: the job has ended, or is gone. A repeat does no harm.
local state = redis.call('HMGET', KEYS[1], 'readers', 'terminal', 'worker', 'journal')
local readers, outcome = state[1], state[2]
if not readers or outcome then return 0 end
if not string.find(' ' .. readers .. ' ', ' ' .. ARGV[1] .. ' ', 1, true) then
  redis.call('HSET', KEYS[1], 'readers', readers .. ' ' .. ARGV[1])
end
tellOfReader(KEYS[1], state[3], state[4])
if ARGV[3] == '1' then redis.call('HSET', KEYS[1], 'kept', '1') end
local sharer = 'sharer:' .. ARGV[1]
-- In case of a repeat that comes late.
if tonumber(redis.call('HGET', KEYS[1], sharer) or 0) < tonumber(ARGV[2]) then redis.call('HSET', KEYS[1], sharer, ARGV[2]) end
return 1
