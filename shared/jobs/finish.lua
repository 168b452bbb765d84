-- The only way a job ends. The first caller wins: it writes the outcome into the state and the terminal frame into the log.
-- Each job is ended independently. Loaded after refusal.lua, lease.lua and journaled.lua.
-- KEYS[2n-1] job state (hash)   KEYS[2n] answer log (stream)
-- ARGV[1] PUBLISH or SPUBLISH, then sixteen per job:
--   1 job id   2 attempt, or '' for a caller that is not the job's worker (canceller, deadline, sweeper)
--   3 guard: '' always; 'queued' only before any attempt has begun; 'uncalled' only while it waits, and no vendor was called for
--     it; 'abandoned' only while no lease is alive; 'overdue' only once its deadline has passed by this clock; 'left <mark>' only
--     while its caller is gone since the leave of that mark, and no retry has adopted it; 'unshared' only while no process has
--     requests that wait for it, unless it goes on without any; 'unshared <mark>' only if none has since that leave, either
--   4 outcome   5 usage as JSON, or ''   6 error code, or ''; a line break and its details as JSON may follow
--   7 frame lines ending with the terminal one   8 number of lines
--   9 inbox channel prefix   10 log lifetime in ms
--   11 lifetime of the state in ms, shortened by its settlement   12 who served, or ''
--   13 its cost in nano-dollars, or '' if unknown
--   14 the number that the first line must get, or '': the caller has written the lines before it
--   15 what its vendor's prompt cache saved, in nano-dollars, or '' for nothing
--   16 '' or, if the caller has published the first of the lines before, how many bytes of them to leave out for readers, and the
--     head of what they get
-- Returns for each, separated by tabs: verdict, recorded outcome, attempt or '', '1' if an attempt's lease was alive or '':
-- finished; already; fenced; refused (guard); gone; gap (the log lacks frames that the caller has written); or error,
-- message if this one could not be ended. Returns an error for all of them if Redis refuses to write.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
-- Redis formats fractional numbers from Lua slower than it runs the command. (%d would do for whole numbers, but it has
-- 32 bits in the embedded Redis, whose Lua is WebAssembly.)
local nowText = string.format('%.0f', now)

local function answer(verdict, outcome, attempt, alive)
  return table.concat({verdict, outcome or '', attempt or '', alive or ''}, '\t')
end

-- Whether requests wait for a shared job (see join-shared.lua), or it goes on without any.
local function isShared(key, readers)
  if redis.call('HEXISTS', key, 'kept') == 1 then return true end
  for reader in string.gmatch(readers, '%S+') do
    if redis.call('HEXISTS', key, 'sharer:' .. reader) == 1 then return true end
  end
  return false
end

local function finish(key, log, job, caller, guard, outcome, usage, code, lines, count, inboxes, logLifetime, lifetime, served, cost,
    expected, saved, published)
  local state = redis.call('HMGET', key, 'attempt', 'terminal', 'seq', 'readers', 'lease', 'worker', 'deadline',
    'silent', 'journal')
  local attempt, lease = state[1], leaseOf(key, state[5], state[8])
  if not state[4] then return answer('gone') end
  if state[2] then return answer('already', state[2], attempt) end
  if caller ~= '' and attempt ~= caller then return answer('fenced') end
  if guard == 'queued' and attempt then return answer('refused') end
  -- Whether its attempts have all waited for their vendors in vain: it has not begun.
  local function isWithdrawn() return attempt and lease == 0 and redis.call('HGET', key, 'withdrawn') == attempt end
  if guard == 'uncalled' and attempt and not isWithdrawn() then return answer('refused') end
  if guard == 'abandoned' and lease > now then return answer('refused') end
  if guard == 'overdue' and now < tonumber(state[7] or 0) then return answer('refused') end
  local condition, mark = string.match(guard, '^(%S+) ?(%S*)$')
  if condition == 'unshared' and isShared(key, state[4]) then return answer('refused') end
  if (mark or '') ~= '' and redis.call('HGET', key, 'left') ~= mark then return answer('refused') end
  local first = tonumber(state[3] or 0) + 1
  if expected ~= '' and tonumber(expected) ~= first then return answer('gap') end
  -- Its worker's own end has all lines; others take from the journal what readers have got.
  if state[9] and expected == '' then
    local taken, added, by = takeJournaled(job, state[9], first - 1, lifetime)
    lines, count, served = taken .. lines, count + added, served ~= '' and served or by or ''
  end
  local last = string.format('%.0f', first + count - 1)
  local batch = (attempt or '0') .. ' ' .. string.format('%.0f', first) .. ' ' .. served .. '\n' .. lines
  redis.call('XADD', log, last .. '-0', 'b', batch)
  redis.call('PEXPIRE', log, logLifetime)
  redis.call('PEXPIRE', key, lifetime)
  local details = ''
  if code ~= '' then code, details = string.match(code, '^([^\n]*)\n?(.*)$') end
  redis.call('HSET', key, 'terminal', outcome, 'seq', last, 'ended', nowText, 'lease', '0', 'usage', usage, 'error', code, 'cost', cost)
  if details ~= '' then redis.call('HSET', key, 'details', details) end
  if saved ~= '' then redis.call('HSET', key, 'saved', saved) end
  endSilence(key, state[8])
  local message = batch
  if published ~= '' then
    local left, head = string.match(published, '^(%d+) (.*)$')
    message = head .. '\n' .. string.sub(lines, left + 1)
  end
  -- The first reader is the process of the job's caller.
  local heard
  for reader in string.gmatch(state[4], '%S+') do
    local receivers = redis.call(ARGV[1], inboxes .. reader, job .. ' ' .. message)
    heard = heard or receivers
  end
  -- No process is there that could deliver it to the caller: a retry may adopt it.
  if heard == 0 then redis.call('HSET', key, 'unheard', '1') end
  local began = attempt
  if caller == '' and isWithdrawn() then began = nil end
  -- A worker still running the job is notified at once, not at its next append.
  if caller == '' and state[6] then redis.call(ARGV[1], inboxes .. state[6], 'abort ' .. job) end
  return answer('finished', outcome, began, lease > now and '1')
end

local replies = {}
for index = 1, #KEYS / 2 do
  local at = 16 * index - 14
  local ok, reply = pcall(finish, KEYS[2 * index - 1], KEYS[2 * index], unpack(ARGV, at, at + 15))
  if not ok then
    local message, refused = refusal(reply)
    if refused then return refused end
    reply = 'error\t' .. message
  end
  replies[index] = reply
end
return replies
