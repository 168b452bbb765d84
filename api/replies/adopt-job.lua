-- Makes a retry the reader of a job that runs, or has completed, and whose caller cannot have its answer: it has left, or its api
-- process is dead. Others may watch the job all the same: that process is the first of the readers. Loaded after journaled.lua.
-- KEYS[1] job state (hash)   KEYS[2] answer log (stream)
-- ARGV[1] reader's process id   ARGV[2] identifies this retry, so that a repeat of the call (the client library resends it after
--   a broken connection) gets the same reply   ARGV[3] NUMSUB or SHARDNUMSUB   ARGV[4] inbox channel prefix
-- ARGV[5] '1' if a process that is not subscribed to its channels is dead, and not cut off from Redis for a moment
-- Returns 1, or 0 if the job is not adopted.
local state = redis.call('HMGET', KEYS[1], 'readers', 'terminal', 'left', 'unheard', 'adopter', 'deleted', 'worker',
  'journal')
local readers, outcome, hasLeft, isUnheard = state[1], state[2], state[3], state[4]

local function isSubscribed(reader)
  return tonumber(redis.call('PUBSUB', ARGV[3], ARGV[4] .. reader)[2]) > 0
end

-- A process is subscribed from its start to its end; one whose end frames reached no process has not delivered them.
local function isUnread()
  if hasLeft then return true end
  if outcome and not isUnheard then return false end
  -- Where this process is not subscribed, that others are not says nothing about them.
  if ARGV[5] ~= '1' or not isSubscribed(ARGV[1]) then return false end
  return not isSubscribed(string.match(readers, '%S+'))
end

if not readers or state[6] then return 0 end
if state[5] == ARGV[2] then return 1 end
if outcome and (outcome ~= 'completed' or redis.call('EXISTS', KEYS[2]) == 0) then return 0 end
if not isUnread() then return 0 end
local next = ARGV[1]
-- The process of a caller that has left may have others that watch the job.
for reader in string.gmatch(hasLeft and readers or string.gsub(readers, '^%S+', ''), '%S+') do
  if reader ~= ARGV[1] then next = next .. ' ' .. reader end
end
redis.call('HSET', KEYS[1], 'readers', next, 'adopter', ARGV[2])
redis.call('HDEL', KEYS[1], 'left', 'unheard')
tellOfReader(KEYS[1], state[7], state[8])
return 1
