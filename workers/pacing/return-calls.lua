-- Returns calls that have ended, with the tokens that they did not use, and renews the leases of those that go on.
-- KEYS[1] start of the keys of the vendor's tag
-- ARGV[1] lease of a call under way, in ms; then for each scope of each call:
--   id   1 if it has ended, 0 if it goes on   name of the scope   its tokens a minute, or ''   tokens reserved but not used (less
--   than 0 if more were used)   1 if its calls at a time are limited, else 0
-- Returns 1. A repeat returns the tokens once more, which is forgotten within a minute.
local root, lease = KEYS[1], tonumber(ARGV[1])
local time = redis.call('TIME')
local now = time[1] * 1000 + time[2] / 1000
-- As in reserve-call.lua.
local usedShare, keptMs = 0.97, 7200000

local function formatted(number) return string.format('%.3f', number) end

for at = 2, #ARGV, 6 do
  local id, hasEnded, scope, tpm, unused = ARGV[at], ARGV[at + 1] == '1', ARGV[at + 2], tonumber(ARGV[at + 3]), tonumber(ARGV[at + 4])
  local calls, bucket = root .. 'calls:' .. scope, root .. 'capacity:' .. scope
  if ARGV[at + 5] == '1' then
    if hasEnded then
      redis.call('ZREM', calls, id)
    else
      redis.call('ZADD', calls, formatted(now + lease), id)
      redis.call('PEXPIRE', calls, keptMs)
    end
  end
  if hasEnded and tpm and unused ~= 0 then
    local full = tonumber(redis.call('HGET', bucket, 'tokens') or 0)
    -- Not before now: what a minute ago was not used does not help.
    local corrected = math.max(full, now) - unused * 60000 / (tpm * usedShare)
    redis.call('HSET', bucket, 'tokens', formatted(math.max(corrected, now - 60000)))
    redis.call('PEXPIRE', bucket, keptMs)
  end
end
return 1
