-- Registers another reader of a job: frames appended from now on are published to it too.
-- KEYS[1] job state (hash)   ARGV[1] reader's process id
-- Returns 1, or 0 if there is no such job.
local readers = redis.call('HGET', KEYS[1], 'readers')
if not readers then return 0 end
if not string.find(' ' .. readers .. ' ', ' ' .. ARGV[1] .. ' ', 1, true) then
  redis.call('HSET', KEYS[1], 'readers', readers .. ' ' .. ARGV[1])
end
return 1
