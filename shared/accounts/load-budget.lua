-- Loads an API key's spending in the current period of its budget, unless it is loaded already. A period of another kind, which
-- the key had before, does not count as loaded. Holds of the key's unfinished jobs count in this period.
-- KEYS[1] budget (hash)   KEYS[2] the key's running jobs (sorted set)   KEYS[3] reservations of the tag (hash, by job id)
-- ARGV[1] period   ARGV[2] spent in it   ARGV[3] when it began, in ms
-- Returns 1 if it was loaded now, 0 if it was already.
local function kindOf(period) return string.match(period, '^%a+') end

local known = redis.call('HGET', KEYS[1], 'period')
if known and kindOf(known) == kindOf(ARGV[1]) then return 0 end
local held = 0
for _, job in ipairs(redis.call('ZRANGE', KEYS[2], 0, -1)) do
  local amount, tokens, lowered, limits = string.match(redis.call('HGET', KEYS[3], job) or '', '^(%S+) (%S+) (%S+) %S+ ?(.*)$')
  if amount and amount ~= '-' then
    held = held + tonumber(amount)
    redis.call('HSET', KEYS[3], job, table.concat({amount, tokens, lowered, ARGV[1], limits}, ' '))
  end
end
redis.call('DEL', KEYS[1])
redis.call('HSET', KEYS[1], 'period', ARGV[1], 'spent', ARGV[2], 'held', string.format('%.0f', held), 'from', ARGV[3])
return 1
