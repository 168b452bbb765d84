-- Appends a batch of frames to each job's log and publishes it, if the caller still owns the job. Loaded after refusal.lua.
-- KEYS[2n-1] job state (hash)   KEYS[2n] answer log (stream)
-- ARGV[1] lease in ms   ARGV[2] PUBLISH or SPUBLISH, then eight per job:
--   1 job id   2 attempt   3 first seq, and who serves   4 last seq   5 frame lines, newline-separated
--   6 inbox channel prefix   7 log lifetime in ms
--   8 '1' if the frames include a delta: from then on the job is never rerun
-- Returns for each: ok; fenced (another attempt owns the job); ended (a terminal is written: cancelled, overdue, …); gone;
-- gap (the log lacks frames before these: Redis has lost them); 'error message' if this one could not be appended.
-- Returns an error for all of them if Redis refuses to write.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local lease = string.format('%.0f', now + ARGV[1])

local function append(key, log, job, attempt, first, last, lines, inboxes, lifetime, hasDelta)
  local state = redis.call('HMGET', key, 'attempt', 'terminal', 'seq', 'readers')
  if not state[4] then return 'gone' end
  if state[2] then return 'ended' end
  if state[1] ~= attempt then return 'fenced' end
  local seq = tonumber(state[3] or 0)
  -- A repeat: the caller's connection broke after the script ran, and the client library resent it.
  if tonumber(last) <= seq then return 'ok' end
  if tonumber(string.match(first, '^%d+')) ~= seq + 1 then return 'gap' end
  local batch = attempt .. ' ' .. first .. '\n' .. lines
  redis.call('XADD', log, last .. '-0', 'b', batch)
  if seq == 0 then
    redis.call('PEXPIRE', log, lifetime)
    redis.call('HSET', key, 'first', string.format('%.0f', now))
  end
  if hasDelta == '1' then redis.call('HSET', key, 'seq', last, 'lease', lease, 'delta', '1')
  else redis.call('HSET', key, 'seq', last, 'lease', lease) end
  for reader in string.gmatch(state[4], '%S+') do
    redis.call(ARGV[2], inboxes .. reader, job .. ' ' .. batch)
  end
  return 'ok'
end

local replies = {}
for index = 1, #KEYS / 2 do
  local at = 8 * index - 5
  local ok, reply = pcall(append, KEYS[2 * index - 1], KEYS[2 * index], unpack(ARGV, at, at + 7))
  if not ok then
    local message, refused = refusal(reply)
    if refused then return refused end
    reply = 'error ' .. message
  end
  replies[index] = reply
end
return replies
