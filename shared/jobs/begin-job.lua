-- beginJob decides what a worker may do with a job it has taken from the queue; called before any vendor call. A part of the
-- scripts that stand behind it: begin.lua, and claim-jobs.lua of the workers. refusal.lua stands before it.
-- key      job state (hash)
-- worker   worker id   lease: in ms   allowed: attempts   mayRepeat: '1' when repeating the job is allowed
-- claim    a name for this very claim of the job, so that a repeat of the call (the client library sends it again after a
--          broken connection) gets the same answer instead of waiting for its own lease
-- Returns, with tabs between: verdict, number, last committed seq, progress, vendor's task; and Redis's error where it refuses
-- to write:
--   drop         no state: nothing is known of this job, or all of it is over
--   settle       it has ended; only the settlement may be missing
--   overdue      its deadline has passed
--   wait, ms     another attempt holds the lease for so long
--   interrupted  output is committed: asking the vendor again would repeat it
--   lost         the vendor runs a task for this job, but its workers die of it
--   poll, attempt  the vendor runs a task for this job: the caller now owns the job, and asks how far the task is
--   unknown      the vendor may have done the work, and it may not be done twice
--   exhausted    it was tried as often as allowed
--   run, attempt the caller now owns the job under this attempt number
--   error, message  this one could not be looked at
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
-- Redis writes numbers that Lua hands it as fractions, which takes it longer than the command. (%d would do for a whole number,
-- but has 32 bits in the Redis that is built in, whose Lua is WebAssembly.)
local nowText = string.format('%.0f', now)

-- Takings of a vendor's task that may end with the death of the worker, or with Redis out of its reach. A poll that kills its
-- worker takes all that runs there with it.
local crashesAllowed = 2

local function verdict(name, number, seq, progress, task)
  return table.concat({name, string.format('%.0f', number or 0), seq or 0, progress or 0, task or ''}, '\t')
end

local function decide(key, worker, lease, allowed, mayRepeat, claim)
  local state = redis.call('HMGET', key, 'deadline', 'terminal', 'lease', 'attempt', 'delta', 'sent', 'released', 'seq', 'taking',
    'task', 'progress', 'crashed')
  if not state[1] then return verdict('drop') end
  if state[2] then return verdict('settle') end
  if now >= tonumber(state[1]) then return verdict('overdue') end
  local function owned(attempt)
    if state[10] then return verdict('poll', attempt, state[8], state[11], state[10]) end
    return verdict('run', attempt, state[8])
  end
  local leased = tonumber(state[3] or 0)
  if leased > now and state[9] == claim then return owned(tonumber(state[4])) end
  if leased > now then return verdict('wait', leased - now) end
  local isFinal = state[5] or (state[6] and not state[10] and mayRepeat ~= '1')
  -- Where the job would end for good, its worker has half a lease more: one that Redis has refused for a while may be there yet.
  if isFinal and leased > 0 and leased + lease / 2 > now then return verdict('wait', leased + lease / 2 - now) end
  if state[5] then return verdict('interrupted') end
  local attempt = tonumber(state[4] or 0) + 1
  local attemptText, leaseText = string.format('%.0f', attempt), string.format('%.0f', now + lease)
  -- A poll raises the attempt as a fence only: it is no try, and "began" stays what it was when the vendor was asked.
  if state[10] then
    -- A claim that ended by itself has let go of its lease.
    local crashed = tonumber(state[12] or 0) + (leased > 0 and 1 or 0)
    if crashed >= crashesAllowed then return verdict('lost') end
    if leased > 0 then redis.call('HSET', key, 'crashed', crashed) end
    redis.call('HSET', key, 'attempt', attemptText, 'worker', worker, 'taking', claim, 'lease', leaseText)
    return owned(attempt)
  end
  if state[6] and mayRepeat ~= '1' then return verdict('unknown') end
  -- An attempt that a draining worker gave back does not count.
  if attempt - tonumber(state[7] or 0) > tonumber(allowed) then return verdict('exhausted') end
  -- "sent" is committed together with the attempt, before the vendor is called: a crash in between counts as a call.
  redis.call('HSET', key, 'attempt', attemptText, 'worker', worker, 'taking', claim, 'lease', leaseText, 'sent', '1',
    'began', nowText)
  return owned(attempt)
end

local function beginJob(...)
  local ok, reply = pcall(decide, ...)
  if ok then return reply end
  local message, refused = refusal(reply)
  return 'error\t' .. message, refused
end
