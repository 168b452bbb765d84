-- Appends a batch of frames to each job's log and publishes it, if the caller still owns the job. Loaded after refusal.lua
-- and lease.lua.
-- KEYS[2n-1] job state (hash)   KEYS[2n] answer log (stream)
-- ARGV[1] lease in ms   ARGV[2] PUBLISH or SPUBLISH   ARGV[3] inbox channel prefix, of any of these jobs, then nine per job:
--   1 job id   2 attempt   3 first seq   4 last seq   5 the batch: attempt, first seq and who serves, then the frame lines
--   6 log lifetime in ms
--   7 '1' if the frames include a delta: from then on the job is never rerun
--   8 '' or, if the caller has published the first of these frames before, how many bytes of the batch to leave out for readers,
--     and the head to put in their place
--   9 '' or, if the caller may write what follows into its journal, where there: from now on, whoever ends the job looks for it
-- Returns for each: ok, with the ids of the readers if it has a journal; fenced (another attempt owns the job); ended (a terminal is written: cancelled, overdue, …); gone;
-- gap (the log lacks frames before these: Redis has lost them); 'error message' if this one could not be appended.
-- Returns an error for all of them if Redis refuses to write.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local lease = string.format('%.0f', now + ARGV[1])
local publishing, inboxes = ARGV[2], ARGV[3]

-- Messages by reader. One that takes several in one message (its id ends with +) gets all of this call at once: a message
-- costs Redis and the reader more than the frame in it.
local messages, readers = {}, {}

local function publish(reader, message)
  if string.sub(reader, -1) ~= '+' then
    redis.call(publishing, inboxes .. reader, message)
  elseif messages[reader] then
    table.insert(messages[reader], message)
  else
    messages[reader] = {message}
    table.insert(readers, reader)
  end
end

-- Delivery is at most once: what cannot be published is read from the log.
local function publishGathered()
  for _, reader in ipairs(readers) do
    redis.pcall(publishing, inboxes .. reader, table.concat(messages[reader], '\n\n'))
  end
end

local function append(key, log, job, attempt, first, last, batch, lifetime, hasDelta, published, journal)
  local state = redis.call('HMGET', key, 'attempt', 'terminal', 'seq', 'readers', 'silent')
  if not state[4] then return 'gone' end
  if state[2] then return 'ended' end
  if state[1] ~= attempt then return 'fenced' end
  local seq = tonumber(state[3] or 0)
  -- A repeat: the caller's connection broke after the script ran, and the client library resent it.
  if tonumber(last) <= seq then return 'ok' end
  if tonumber(first) ~= seq + 1 then return 'gap' end
  redis.call('XADD', log, last .. '-0', 'b', batch)
  if seq == 0 then
    redis.call('PEXPIRE', log, lifetime)
    redis.call('HSET', key, 'first', string.format('%.0f', now))
  end
  if hasDelta == '1' then redis.call('HSET', key, 'seq', last, 'lease', lease, 'delta', '1')
  else redis.call('HSET', key, 'seq', last, 'lease', lease) end
  endSilence(key, state[5])
  local message = batch
  if published ~= '' then
    local left, head = string.match(published, '^(%d+) (.*)$')
    message = head .. '\n' .. string.sub(batch, left + 1)
  end
  for reader in string.gmatch(state[4], '%S+') do publish(reader, job .. ' ' .. message) end
  if journal == '' then return 'ok' end
  redis.call('HSET', key, 'journal', journal)
  return 'ok ' .. state[4]
end

local replies = {}
for index = 1, #KEYS / 2 do
  local at = 9 * index - 5
  local ok, reply = pcall(append, KEYS[2 * index - 1], KEYS[2 * index], unpack(ARGV, at, at + 8))
  if not ok then
    local message, refused = refusal(reply)
    if refused then
      -- What is in the log already is a repeat next time, and not published then.
      publishGathered()
      return refused
    end
    reply = 'error ' .. message
  end
  replies[index] = reply
end
publishGathered()
return replies
