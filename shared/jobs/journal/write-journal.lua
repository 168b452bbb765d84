-- Writes frames of many jobs into their worker's journal, as one entry, and publishes them. Their logs lack them: their worker
-- appends them a moment later, and whoever ends one of the jobs before does (see journaled.lua).
-- KEYS[1] journal (stream)   KEYS[2] its head (hash): number of the last entry, ids of jobs that others have ended
-- ARGV[1] number of this entry, from 1   ARGV[2] number of the oldest one that is still needed
-- ARGV[3] lifetime of both keys in ms   ARGV[4] inbox channel prefix, of any of the jobs
-- ARGV[5] ids of ended jobs that earlier calls have told of, separated by spaces
-- ARGV[6…] two per reader: its id; the message for it, `<job> <batch>` of each job, with an empty line between them
-- Returns the ids of jobs, besides those, that others have ended: nothing of them is written. Or nothing if an entry before this one is missing,
-- as Redis has lost it: then nothing is written at all.
local number = tonumber(ARGV[1])
local last = tonumber(redis.call('HGET', KEYS[2], 'last') or 0)
if last < number - 1 then return false end
if ARGV[5] ~= '' then
  for job in string.gmatch(ARGV[5], '%S+') do redis.call('HDEL', KEYS[2], job) end
end
local ended, isEnded = {}, {}
if redis.call('HLEN', KEYS[2]) > (last > 0 and 1 or 0) then
  for _, field in ipairs(redis.call('HKEYS', KEYS[2])) do
    if field ~= 'last' then
      ended[#ended + 1] = field
      isEnded[field] = true
    end
  end
end
-- A repeat: the caller's connection broke after the script ran, and the client library resent it.
if last >= number then return ended end

local function withoutEnded(message)
  local hasEnded = false
  for _, job in ipairs(ended) do hasEnded = hasEnded or string.find(message, job, 1, true) end
  if not hasEnded then return message end
  local kept = {}
  for batch in string.gmatch(message .. '\n\n', '(.-)\n\n') do
    if not isEnded[string.match(batch, '^%S+')] then kept[#kept + 1] = batch end
  end
  return table.concat(kept, '\n\n')
end

local entry = {}
for index = 6, #ARGV, 2 do
  local message = #ended == 0 and ARGV[index + 1] or withoutEnded(ARGV[index + 1])
  if message ~= '' then
    entry[#entry + 1] = ARGV[index]
    entry[#entry + 1] = message
  end
end
if #entry > 0 then redis.call('XADD', KEYS[1], 'MINID', '~', ARGV[2], ARGV[1] .. '-0', unpack(entry)) end
redis.call('HSET', KEYS[2], 'last', ARGV[1])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
redis.call('PEXPIRE', KEYS[2], ARGV[3])
-- Delivery is at most once: what cannot be published is read from the log.
for index = 1, #entry, 2 do redis.pcall('PUBLISH', ARGV[4] .. entry[index], entry[index + 1]) end
return ended
