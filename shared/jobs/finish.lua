-- The only way a job ends. The first caller wins: it writes the outcome into the state and the terminal frame into the log.
-- Each of some jobs is ended by itself. refusal.lua stands before this.
-- KEYS[2n-1] job state (hash)   KEYS[2n] answer log (stream)
-- ARGV[1] PUBLISH or SPUBLISH, then fourteen of each job:
--   1 job id   2 attempt, or '' for a caller that is not the job's worker (canceller, deadline, sweeper)
--   3 guard: '' always; 'queued' only while no attempt has begun; 'abandoned' only while no lease lives; 'overdue' only once
--     its deadline has passed by this clock
--   4 outcome   5 usage as JSON, or ''   6 error code, or ''; a line break and its details as JSON may follow
--   7 frame lines ending with the terminal one   8 how many lines
--   9 inbox channel prefix   10 log lifetime in ms
--   11 lifetime in ms of the state, which its settlement shortens   12 who served, or ''
--   13 what it has cost in nano-dollars, or '' where nobody knows
--   14 the number that the first line must get, or '': the lines before it are those that the caller has written
-- Returns for each, with tabs between, verdict, outcome that stands, attempt or '', '1' where an attempt's lease was alive or '':
-- finished; already; fenced; refused (guard); gone; gap (the log has not the frames that the caller has written); or error,
-- message where this one could not be ended. Returns an error for all of them where Redis refuses to write.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
-- Redis writes numbers that Lua hands it as fractions, which takes it longer than the command. (%d would do for a whole number,
-- but has 32 bits in the Redis that is built in, whose Lua is WebAssembly.)
local nowText = string.format('%.0f', now)

local function answer(verdict, outcome, attempt, alive)
  return table.concat({verdict, outcome or '', attempt or '', alive or ''}, '\t')
end

local function finish(key, log, job, caller, guard, outcome, usage, code, lines, count, inboxes, logLifetime, lifetime, served, cost,
    expected)
  local state = redis.call('HMGET', key, 'attempt', 'terminal', 'seq', 'readers', 'lease', 'worker', 'deadline')
  local attempt, lease = state[1], tonumber(state[5] or 0)
  if not state[4] then return answer('gone') end
  if state[2] then return answer('already', state[2], attempt) end
  if caller ~= '' and attempt ~= caller then return answer('fenced') end
  if guard == 'queued' and attempt then return answer('refused') end
  if guard == 'abandoned' and lease > now then return answer('refused') end
  if guard == 'overdue' and now < tonumber(state[7] or 0) then return answer('refused') end
  local first = tonumber(state[3] or 0) + 1
  if expected ~= '' and tonumber(expected) ~= first then return answer('gap') end
  local last = string.format('%.0f', first + count - 1)
  local batch = (attempt or '0') .. ' ' .. string.format('%.0f', first) .. ' ' .. served .. '\n' .. lines
  redis.call('XADD', log, last .. '-0', 'b', batch)
  redis.call('PEXPIRE', log, logLifetime)
  redis.call('PEXPIRE', key, lifetime)
  local details = ''
  if code ~= '' then code, details = string.match(code, '^([^\n]*)\n?(.*)$') end
  redis.call('HSET', key, 'terminal', outcome, 'seq', last, 'ended', nowText, 'lease', '0', 'usage', usage, 'error', code, 'cost', cost)
  if details ~= '' then redis.call('HSET', key, 'details', details) end
  for reader in string.gmatch(state[4], '%S+') do
    redis.call(ARGV[1], inboxes .. reader, job .. ' ' .. batch)
  end
  -- A worker that is still at it learns at once, not at its next append.
  if caller == '' and state[6] then redis.call(ARGV[1], inboxes .. state[6], 'abort ' .. job) end
  return answer('finished', outcome, attempt, lease > now and '1')
end

local replies = {}
for index = 1, #KEYS / 2 do
  local at = 14 * index - 12
  local ok, reply = pcall(finish, KEYS[2 * index - 1], KEYS[2 * index], unpack(ARGV, at, at + 13))
  if not ok then
    local message, refused = refusal(reply)
    if refused then return refused end
    reply = 'error\t' .. message
  end
  replies[index] = reply
end
return replies
