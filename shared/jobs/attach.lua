-- Registers another reader of a job: frames appended from now on are published to it too. Loaded after journaled.lua.
-- KEYS[1] job state (hash)   ARGV[1] reader's process id
-- Returns 1, or 0 if there is no such job.
local state = redis.call('HMGET', KEYS[1], 'readers', 'worker', 'journal')
local readers = state[1]
if not readers then return 0 end
if not string.find(' ' .. readers .. ' ', ' ' .. ARGV[1] .. ' ', 1, true) then
  redis.call('HSET', KEYS[1], 'readers', readers .. ' ' .. ARGV[1])
end
tellOfReader(KEYS[1], state[2], state[3])
return 1
