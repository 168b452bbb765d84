-- Decides what a worker may do with a job it has taken from the queue. Called before any vendor call.
-- KEYS[1] job state (hash)
-- ARGV[1] worker id   ARGV[2] lease in ms   ARGV[3] attempts allowed   ARGV[4] '1' when repeating is allowed
-- ARGV[5] a name for this very taking of the job, so that a repeat of the call (the client library sends it again after a
--         broken connection) gets the same answer instead of waiting for its own lease
-- Answers {verdict, number, last committed seq, vendor's task, progress}:
--   drop         no state: nothing is known of this job, or all of it is over
--   settle       it has ended; only the settlement may be missing
--   overdue      its deadline has passed
--   wait, ms     another attempt holds the lease for so long
--   interrupted  output is committed: asking the vendor again would repeat it
--   poll, attempt  the vendor runs a task for this job: the caller now owns the job, and asks how far the task is
--   unknown      the vendor may have done the work, and it may not be done twice
--   exhausted    it was tried as often as allowed
--   run, attempt the caller now owns the job under this attempt number
local state = redis.call('HMGET', KEYS[1], 'deadline', 'terminal', 'lease', 'attempt', 'delta', 'sent', 'released', 'seq', 'taking',
  'task', 'progress')
if not state[1] then return {'drop', 0, 0} end
if state[2] then return {'settle', 0, 0} end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
if now >= tonumber(state[1]) then return {'overdue', 0, 0} end
local lease = tonumber(state[3] or 0)
local function owned(attempt)
  local seq = tonumber(state[8] or 0)
  if state[10] then return {'poll', attempt, seq, state[10], tonumber(state[11] or 0)} end
  return {'run', attempt, seq}
end
if lease > now and state[9] == ARGV[5] then return owned(tonumber(state[4])) end
if lease > now then return {'wait', lease - now, 0} end
if state[5] then return {'interrupted', 0, 0} end
local attempt = tonumber(state[4] or 0) + 1
-- A poll raises the attempt as a fence only: it is no try, and "began" stays what it was when the vendor was asked.
if state[10] then
  redis.call('HSET', KEYS[1], 'attempt', attempt, 'worker', ARGV[1], 'taking', ARGV[5], 'lease', now + ARGV[2])
  return owned(attempt)
end
if state[6] and ARGV[4] ~= '1' then return {'unknown', 0, 0} end
-- An attempt that a draining worker gave back does not count.
if attempt - tonumber(state[7] or 0) > tonumber(ARGV[3]) then return {'exhausted', 0, 0} end
-- "sent" is committed together with the attempt, before the vendor is called: a crash in between counts as a call.
redis.call('HSET', KEYS[1], 'attempt', attempt, 'worker', ARGV[1], 'taking', ARGV[5],
  'lease', now + ARGV[2], 'sent', 1, 'began', now)
return owned(attempt)
