-- Returns calls that have ended, with the tokens that they did not use, and renews the leases of those that go on.
-- Preceded by is-ahead.lua.
-- KEYS[1] start of the keys of the vendor's tag
-- ARGV[1] lease of a call under way, in ms; then for each scope:
--   name   its tokens a minute, or ''   tokens reserved but not used by those that have ended (less than 0 if more were used)
--   if its calls at a time are limited: how many have ended, and how many go on; then their ids, in this order
-- Returns 1. A repeat returns the tokens once more, which is forgotten within a minute.
local root, lease = KEYS[1], tonumber(ARGV[1])
local time = redis.call('TIME')
local now = time[1] * 1000 + time[2] / 1000
-- As in reserve-call.lua.
local usedShare, keptMs = 0.97, 7200000

local function formatted(number) return string.format('%.3f', number) end

local at = 2
while at <= #ARGV do
  local scope, tpm, unused = ARGV[at], tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2])
  local ended, renewed = tonumber(ARGV[at + 3]), tonumber(ARGV[at + 4])
  local calls, bucket = root .. 'calls:' .. scope, root .. 'capacity:' .. scope
  at = at + 5
  if ended > 0 then redis.call('ZREM', calls, unpack(ARGV, at, at + ended - 1)) end
  at = at + ended
  if renewed > 0 then
    local leases, untilText = {}, formatted(now + lease)
    for index = 1, renewed do leases[2 * index - 1], leases[2 * index] = untilText, ARGV[at + index - 1] end
    redis.call('ZADD', calls, unpack(leases))
    redis.call('PEXPIRE', calls, keptMs)
  end
  at = at + renewed
  if tpm and unused ~= 0 then
    if isAhead(redis.call('HGET', bucket, 'at'), now) then redis.call('DEL', bucket) end
    local full = tonumber(redis.call('HGET', bucket, 'tokens') or 0)
    -- Not before now: what a minute ago was not used does not help.
    local corrected = math.max(full, now) - unused * 60000 / (tpm * usedShare)
    redis.call('HSET', bucket, 'tokens', formatted(math.max(corrected, now - 60000)), 'at', formatted(now))
    redis.call('PEXPIRE', bucket, keptMs)
  end
end
return 1
