-- Releases a job whose vendor's task is running until its next poll: the lease ends at once, so that the next worker to claim
-- the job can begin it. New progress is written to state and log in the same step, so no crash moves it back.
-- Loaded after lease.lua.
-- KEYS[1] job state (hash)   KEYS[2] answer log (stream)
-- ARGV[1] job id   ARGV[2] attempt   ARGV[3] progress   ARGV[4] the progress as a frame line
-- ARGV[5] inbox channel prefix   ARGV[6] PUBLISH or SPUBLISH   ARGV[7] log lifetime in ms
-- ARGV[8] when the next poll is due, from which its lateness is computed (see queue.ts)
-- Returns as append does: ok; fenced; ended; gone. A repeat of the call changes nothing.
local state = redis.call('HMGET', KEYS[1], 'attempt', 'terminal', 'seq', 'readers', 'progress', 'silent')
if not state[4] then return 'gone' end
if state[2] then return 'ended' end
if state[1] ~= ARGV[2] then return 'fenced' end
redis.call('HSET', KEYS[1], 'lease', 0, 'due', ARGV[8])
endSilence(KEYS[1], state[6])
if tonumber(ARGV[3]) <= tonumber(state[5] or 0) then return 'ok' end
local seq = string.format('%.0f', tonumber(state[3] or 0) + 1)
local batch = ARGV[2] .. ' ' .. seq .. '\n' .. ARGV[4]
redis.call('XADD', KEYS[2], seq .. '-0', 'b', batch)
if seq == '1' then redis.call('PEXPIRE', KEYS[2], ARGV[7]) end
redis.call('HSET', KEYS[1], 'seq', seq, 'progress', ARGV[3])
for reader in string.gmatch(state[4], '%S+') do
  redis.call(ARGV[6], ARGV[5] .. reader, ARGV[1] .. ' ' .. batch)
end
return 'ok'
