-- Notes that the last request of a process has left a shared job, and which other processes are dead.
-- KEYS[1] job state (hash)
-- ARGV[1] reader's process id   ARGV[2] number of the process's last join: if a later one has come, it stays
-- ARGV[3] mark of this leave, by which it is told from a later one
-- ARGV[4…] reader's ids of processes that are dead
-- Returns the reader's ids of the processes that have requests left; nothing if the job is not to be cancelled: it has ended, or
-- goes on without readers. A repeat does no harm.
local state = redis.call('HMGET', KEYS[1], 'readers', 'terminal', 'kept', 'sharer:' .. ARGV[1])
local readers, outcome, isKept, number = state[1], state[2], state[3], state[4]
if not readers or outcome then return false end
if number and tonumber(number) <= tonumber(ARGV[2]) then redis.call('HDEL', KEYS[1], 'sharer:' .. ARGV[1]) end
for index = 4, #ARGV do redis.call('HDEL', KEYS[1], 'sharer:' .. ARGV[index]) end
if isKept then return false end
local left = {}
for reader in string.gmatch(readers, '%S+') do
  if redis.call('HEXISTS', KEYS[1], 'sharer:' .. reader) == 1 then left[#left + 1] = reader end
end
if #left == 0 then redis.call('HSET', KEYS[1], 'left', ARGV[3]) end
return left
