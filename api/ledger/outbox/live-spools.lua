-- Counts the spools that have been reported lately, and removes those that have not been for long: their disks may never return.
-- A spool that is reported at the same time is not removed.
-- KEYS[1] spools (hash)   ARGV[1] ms without a report after which a spool does not count
-- ARGV[2] ms without a report after which it is removed
-- Returns the number of spools that count, then the names of those removed.
local spools = KEYS[1]
local silentMs, removedMs = tonumber(ARGV[1]), tonumber(ARGV[2])
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local live, removed = 0, {}
local entries = redis.call('HGETALL', spools)
for index = 1, #entries, 2 do
  local name, at = entries[index], tonumber(string.match(entries[index + 1], '^%d+$') or 0)
  if now - at >= removedMs then
    redis.call('HDEL', spools, name)
    removed[#removed + 1] = name
  elseif now - at < silentMs then
    live = live + 1
  end
end
return {live, unpack(removed)}
