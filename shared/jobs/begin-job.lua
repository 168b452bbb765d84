-- beginJob decides what a worker may do with a job claimed from the queue, before any vendor call. Included by begin.lua and
-- by the workers' claim-jobs.lua. Loaded after refusal.lua.
-- key      job state (hash)
-- worker   worker id   lease: in ms   allowed: attempts   mayRepeat: '1' if the job may be repeated
-- claim    identifies this claim of the job, so that a repeat of the call (the client library resends it after a broken
--          connection) gets the same reply instead of waiting for its own lease
-- Returns, separated by tabs: verdict, number, last committed seq, progress, vendor's task; and Redis's error if it refuses
-- to write:
--   drop         no state: the job is unknown, or has expired
--   settle       it has ended; only the settlement may be missing
--   overdue      its deadline has passed
--   wait, ms     another attempt holds the lease for this long
--   interrupted  output is committed: calling the vendor again would repeat it
--   lost         the vendor runs a task for this job, but polling it kills workers
--   poll, attempt  the vendor runs a task for this job: the caller now owns the job and polls the task
--   unknown      the vendor may have done the work, and it must not be done twice
--   exhausted    all allowed attempts are used
--   run, attempt the caller now owns the job under this attempt number; in place of the progress: how many attempts before have
--     called no vendor
--   error, message  this job could not be examined
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
-- Redis formats fractional numbers from Lua slower than it runs the command. (%d would do for whole numbers, but it has
-- 32 bits in the embedded Redis, whose Lua is WebAssembly.)
local nowText = string.format('%.0f', now)

-- How many claims of a vendor's task may end with a dead worker, or one that cannot reach Redis. A poll that kills its
-- worker also kills everything else running there.
local crashesAllowed = 2

local function verdict(name, number, seq, progress, task)
  return table.concat({name, string.format('%.0f', number or 0), seq or 0, progress or 0, task or ''}, '\t')
end

local function decide(key, worker, lease, allowed, mayRepeat, claim)
  local state = redis.call('HMGET', key, 'deadline', 'terminal', 'lease', 'attempt', 'delta', 'sent', 'released', 'seq', 'taking',
    'task', 'progress', 'crashed', 'silent', 'withdrawn')
  if not state[1] then return verdict('drop') end
  if state[2] then return verdict('settle') end
  if now >= tonumber(state[1]) then return verdict('overdue') end
  local function owned(attempt)
    if state[10] then return verdict('poll', attempt, state[8], state[11], state[10]) end
    return verdict('run', attempt, state[8], state[14])
  end
  local leased = leaseOf(key, state[3], state[13])
  if leased > now and state[9] == claim then return owned(tonumber(state[4])) end
  if leased > now then return verdict('wait', leased - now) end
  local isFinal = state[5] or (state[6] and not state[10] and mayRepeat ~= '1')
  -- Before a job ends for good, its worker gets another half lease: one that Redis refused for a while may still be alive.
  if isFinal and leased > 0 and leased + lease / 2 > now then return verdict('wait', leased + lease / 2 - now) end
  if state[5] then return verdict('interrupted') end
  local attempt = tonumber(state[4] or 0) + 1
  local attemptText, leaseText = string.format('%.0f', attempt), string.format('%.0f', now + lease)
  -- A poll raises the attempt only as a fence: it is not a try, and "began" keeps the time of the vendor call.
  if state[10] then
    -- A claim that ended on its own has released its lease.
    local crashed = tonumber(state[12] or 0) + (leased > 0 and 1 or 0)
    if crashed >= crashesAllowed then return verdict('lost') end
    if leased > 0 then redis.call('HSET', key, 'crashed', crashed) end
    redis.call('HSET', key, 'attempt', attemptText, 'worker', worker, 'taking', claim, 'lease', leaseText)
    endSilence(key, state[13])
    return owned(attempt)
  end
  if state[6] and mayRepeat ~= '1' then return verdict('unknown') end
  -- An attempt that a draining worker requeued does not count.
  if attempt - tonumber(state[7] or 0) > tonumber(allowed) then return verdict('exhausted') end
  -- "sent" is committed with the attempt, before the vendor is called: a crash in between counts as a call.
  redis.call('HSET', key, 'attempt', attemptText, 'worker', worker, 'taking', claim, 'lease', leaseText, 'sent', '1',
    'began', nowText)
  endSilence(key, state[13])
  return owned(attempt)
end

local function beginJob(...)
  local ok, reply = pcall(decide, ...)
  if ok then return reply end
  local message, refused = refusal(reply)
  return 'error\t' .. message, refused
end
