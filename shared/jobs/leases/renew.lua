-- Renews a worker's leases on jobs whose vendors are silent. Loaded after refusal.lua and lease.lua.
-- KEYS job states (hashes), those of a tag one after the other
-- ARGV[1] lease in ms   ARGV[2] '1' if they become entries of their tag's leases, which each process must read; else ''
-- ARGV[n + 2] attempt at the nth job
-- Returns for each, as append does, whether the worker still owns the job: ok, fenced, ended, gone; 'error message' if this one
-- could not be renewed. Returns an error for all of them if Redis refuses to write.
local time = redis.call('TIME')
local lease = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000) + ARGV[1])
local gathers = ARGV[2] == '1'
local replies = {}

-- Renews a lease that is not an entry yet. Returns the rest of its entry if it becomes one.
local function renew(index, key, attempt)
  local state = redis.call('HMGET', key, 'attempt', 'terminal', 'seq', 'deadline', 'silent')
  replies[index] = (not state[1] and 'gone') or (state[2] and 'ended') or (state[1] ~= attempt and 'fenced') or 'ok'
  if replies[index] ~= 'ok' then return end
  if not gathers then
    redis.call('HSET', key, 'lease', lease)
    endSilence(key, state[5])
    return
  end
  redis.call('HSET', key, 'lease', lease, 'silent', '1')
  return table.concat({'', attempt, state[3] or '0', state[4]}, ' ')
end

-- Renews the leases of one tag: first to last of the jobs.
local function renewTag(leases, jobs, first)
  local entries, renewed = gathers and redis.call('HMGET', leases, unpack(jobs)) or {}, {}
  for position, job in ipairs(jobs) do
    local index, entry = first + position - 1, entries[position]
    local attempt = ARGV[index + 2]
    local rest = entry and string.match(entry, '^%d+( .*)$')
    if rest and string.match(rest, '^ (%d+) ') == attempt then
      replies[index] = 'ok'
    else
      local ok, reply = pcall(renew, index, KEYS[index], attempt)
      if not ok then
        local message, refused = refusal(reply)
        if refused then return refused end
        replies[index] = 'error ' .. message
      end
      rest = ok and reply
    end
    if rest then renewed[#renewed + 1], renewed[#renewed + 2] = job, lease .. rest end
  end
  if #renewed > 0 then redis.call('HSET', leases, unpack(renewed)) end
end

local function renewJobs(leases, jobs, first)
  local ok, refused = pcall(renewTag, leases, jobs, first)
  if ok then return refused end
  local message, isRefused = refusal(refused)
  for position in ipairs(jobs) do replies[first + position - 1] = 'error ' .. message end
  return isRefused
end

return eachTag(renewJobs) or replies
