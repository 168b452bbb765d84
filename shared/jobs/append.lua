-- Appends a batch of frames to a job's log and publishes it, if the caller still owns the job.
-- KEYS[1] job state (hash)   KEYS[2] answer log (stream)
-- ARGV[1] job id   ARGV[2] attempt   ARGV[3] first seq, and who serves   ARGV[4] last seq   ARGV[5] frame lines, newline-separated
-- ARGV[6] lease in ms   ARGV[7] inbox channel prefix   ARGV[8] PUBLISH or SPUBLISH   ARGV[9] log lifetime in ms
-- ARGV[10] '1' when a delta is among the frames: from then on the job is never run again
-- Answers: ok; fenced (another attempt owns the job); ended (a terminal is written: cancelled, overdue, …); gone.
local state = redis.call('HMGET', KEYS[1], 'attempt', 'terminal', 'seq', 'readers')
if not state[4] then return 'gone' end
if state[2] then return 'ended' end
if state[1] ~= ARGV[2] then return 'fenced' end
local seq = tonumber(state[3] or 0)
-- A repeat: the caller's connection broke after the script had run, and the client library sent it again.
if tonumber(ARGV[4]) <= seq then return 'ok' end
local batch = ARGV[2] .. ' ' .. ARGV[3] .. '\n' .. ARGV[5]
redis.call('XADD', KEYS[2], ARGV[4] .. '-0', 'b', batch)
if seq == 0 then redis.call('PEXPIRE', KEYS[2], ARGV[9]) end
local time = redis.call('TIME')
local lease = time[1] * 1000 + math.floor(time[2] / 1000) + ARGV[6]
if ARGV[10] == '1' then redis.call('HSET', KEYS[1], 'seq', ARGV[4], 'lease', lease, 'delta', 1)
else redis.call('HSET', KEYS[1], 'seq', ARGV[4], 'lease', lease) end
for reader in string.gmatch(state[4], '%S+') do
  redis.call(ARGV[8], ARGV[7] .. reader, ARGV[1] .. ' ' .. batch)
end
return 'ok'
