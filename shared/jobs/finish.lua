-- The only way a job ends. The first caller wins: it writes the outcome into the state and the terminal frame into the log.
-- KEYS[1] job state (hash)   KEYS[2] answer log (stream)
-- ARGV[1] job id   ARGV[2] attempt, or '' for a caller that is not the job's worker (canceller, deadline, sweeper)
-- ARGV[3] guard: '' always; 'queued' only while no attempt has begun; 'abandoned' only while no lease lives
-- ARGV[4] outcome   ARGV[5] usage as JSON, or ''   ARGV[6] error code, or ''
-- ARGV[7] frame lines ending with the terminal one   ARGV[8] how many lines
-- ARGV[9] inbox channel prefix   ARGV[10] PUBLISH or SPUBLISH   ARGV[11] log lifetime in ms
-- ARGV[12] lifetime in ms of the state, which its settlement shortens   ARGV[13] who served, or ''
-- ARGV[14] what it has cost in nano-dollars, or '' where nobody knows
-- Answers {verdict, outcome that stands, attempt or '', '1' where an attempt's lease was alive or ''}: finished; already;
-- fenced; refused (guard); gone.
local state = redis.call('HMGET', KEYS[1], 'attempt', 'terminal', 'seq', 'readers', 'lease', 'worker')
if not state[4] then return {'gone', '', ''} end
if state[2] then return {'already', state[2], state[1] or ''} end
if ARGV[2] ~= '' and state[1] ~= ARGV[2] then return {'fenced', '', ''} end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
if ARGV[3] == 'queued' and state[1] then return {'refused', '', ''} end
if ARGV[3] == 'abandoned' and tonumber(state[5] or 0) > now then return {'refused', '', ''} end
local first = tonumber(state[3] or 0) + 1
local last = first + ARGV[8] - 1
local batch = (state[1] or '0') .. ' ' .. string.format('%d', first) .. ' ' .. ARGV[13] .. '\n' .. ARGV[7]
redis.call('XADD', KEYS[2], string.format('%d', last) .. '-0', 'b', batch)
redis.call('PEXPIRE', KEYS[2], ARGV[11])
redis.call('PEXPIRE', KEYS[1], ARGV[12])
redis.call('HSET', KEYS[1], 'terminal', ARGV[4], 'seq', string.format('%d', last), 'ended', now, 'lease', 0,
  'usage', ARGV[5], 'error', ARGV[6], 'cost', ARGV[14])
for reader in string.gmatch(state[4], '%S+') do
  redis.call(ARGV[10], ARGV[9] .. reader, ARGV[1] .. ' ' .. batch)
end
-- A worker that is still at it learns at once, not at its next append.
if ARGV[2] == '' and state[6] then redis.call(ARGV[10], ARGV[9] .. state[6], 'abort ' .. ARGV[1]) end
return {'finished', ARGV[4], state[1] or '', tonumber(state[5] or 0) > now and '1' or ''}
