-- Renews a worker's leases on jobs whose vendors are silent. Loaded after refusal.lua.
-- KEYS job states (hashes)   ARGV[1] lease in ms   ARGV[n + 1] attempt at the nth job
-- Returns for each, as append does, whether the worker still owns the job: ok, fenced, ended, gone; 'error message' if this one
-- could not be renewed. Returns an error for all of them if Redis refuses to write.
local time = redis.call('TIME')
local lease = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000) + ARGV[1])

local function renew(key, attempt)
  local state = redis.call('HMGET', key, 'attempt', 'terminal')
  if not state[1] then return 'gone' end
  if state[2] then return 'ended' end
  if state[1] ~= attempt then return 'fenced' end
  redis.call('HSET', key, 'lease', lease)
  return 'ok'
end

local replies = {}
for index, key in ipairs(KEYS) do
  local ok, reply = pcall(renew, key, ARGV[index + 1])
  if not ok then
    local message, refused = refusal(reply)
    if refused then return refused end
    reply = 'error ' .. message
  end
  replies[index] = reply
end
return replies
