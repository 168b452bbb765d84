-- Reports that a spool has records, or has none left.
-- KEYS[1] spools (hash)   ARGV[1] the spool's name   ARGV[2] its number of records
-- Returns 1.
local spools = KEYS[1]
local name, records = ARGV[1], tonumber(ARGV[2])
if records == 0 then
  redis.call('HDEL', spools, name)
else
  local time = redis.call('TIME')
  redis.call('HSET', spools, name, string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000)))
end
return 1
