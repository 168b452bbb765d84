-- Decides what a worker may do with jobs it has taken from the queue, each by itself. Called before any vendor call.
-- KEYS[n] job state (hash)
-- ARGV[1] worker id   ARGV[2] lease in ms   ARGV[3] attempts allowed
-- ARGV[2n+2] '1' when repeating the job is allowed
-- ARGV[2n+3] a name for this very taking of the job, so that a repeat of the call (the client library sends it again after a
--         broken connection) gets the same answer instead of waiting for its own lease
-- Answers for each, with tabs between: verdict, number, last committed seq, progress, vendor's task:
--   drop         no state: nothing is known of this job, or all of it is over
--   settle       it has ended; only the settlement may be missing
--   overdue      its deadline has passed
--   wait, ms     another attempt holds the lease for so long
--   interrupted  output is committed: asking the vendor again would repeat it
--   poll, attempt  the vendor runs a task for this job: the caller now owns the job, and asks how far the task is
--   unknown      the vendor may have done the work, and it may not be done twice
--   exhausted    it was tried as often as allowed
--   run, attempt the caller now owns the job under this attempt number
--   error, message  this one could not be looked at
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local worker, lease, allowed = ARGV[1], now + ARGV[2], tonumber(ARGV[3])

local function answer(verdict, number, seq, progress, task)
  return table.concat({verdict, string.format('%.0f', number or 0), seq or 0, progress or 0, task or ''}, '\t')
end

local function begin(key, mayRepeat, taking)
  local state = redis.call('HMGET', key, 'deadline', 'terminal', 'lease', 'attempt', 'delta', 'sent', 'released', 'seq', 'taking',
    'task', 'progress')
  if not state[1] then return answer('drop') end
  if state[2] then return answer('settle') end
  if now >= tonumber(state[1]) then return answer('overdue') end
  local function owned(attempt)
    if state[10] then return answer('poll', attempt, state[8], state[11], state[10]) end
    return answer('run', attempt, state[8])
  end
  local leased = tonumber(state[3] or 0)
  if leased > now and state[9] == taking then return owned(tonumber(state[4])) end
  if leased > now then return answer('wait', leased - now) end
  if state[5] then return answer('interrupted') end
  local attempt = tonumber(state[4] or 0) + 1
  -- A poll raises the attempt as a fence only: it is no try, and "began" stays what it was when the vendor was asked.
  if state[10] then
    redis.call('HSET', key, 'attempt', attempt, 'worker', worker, 'taking', taking, 'lease', lease)
    return owned(attempt)
  end
  if state[6] and mayRepeat ~= '1' then return answer('unknown') end
  -- An attempt that a draining worker gave back does not count.
  if attempt - tonumber(state[7] or 0) > allowed then return answer('exhausted') end
  -- "sent" is committed together with the attempt, before the vendor is called: a crash in between counts as a call.
  redis.call('HSET', key, 'attempt', attempt, 'worker', worker, 'taking', taking, 'lease', lease, 'sent', 1, 'began', now)
  return owned(attempt)
end

local replies = {}
for index, key in ipairs(KEYS) do
  local ok, reply = pcall(begin, key, ARGV[2 * index + 2], ARGV[2 * index + 3])
  replies[index] = ok and reply or 'error\t' .. (type(reply) == 'table' and reply.err or tostring(reply))
end
return replies
