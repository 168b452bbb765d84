-- Loads the spending in the current period of a budget, unless it is loaded already. A period of another kind, which the key had
-- before, does not count as loaded, nor does one that is yet to come. Holds of the unfinished jobs of the budget's keys count in
-- this period.
-- Preceded by is-ahead.lua.
-- KEYS[1] the budget (hash)   KEYS[2] reservations of the tag (hash, by job id)
-- KEYS[2n+1] own hash of a key that spends it: the budget itself if it is not common   KEYS[2n+2] the key's running jobs (sorted set)
-- ARGV[1] period   ARGV[2] spent in it   ARGV[3] when it began, in ms
-- ARGV[4] '' or the name of the common budget: each key's own hash names it from then on, so settlements find it
-- Returns 1 if it was loaded now, 0 if it was already.
local common = ARGV[4]
local function kindOf(period) return string.match(period, '^%a+') end

local known = redis.call('HMGET', KEYS[1], 'period', 'from')
local now = redis.call('TIME')[1] * 1000
local isLoaded = known[1] and kindOf(known[1]) == kindOf(ARGV[1]) and not isAhead(known[2], now)
for index = 3, #KEYS, 2 do
  local named = redis.call('HGET', KEYS[index], 'common') or ''
  -- What this key spent since then is only in a hash of its own.
  if named ~= common then isLoaded = false end
  -- A process of the release before runs: the common one misses what that settles. Its next use loads it again.
  if named ~= '' and common == '' then redis.call('DEL', string.match(KEYS[1], '^.*:budget:') .. named) end
end
if isLoaded then return 0 end
local held = 0
for index = 3, #KEYS, 2 do
  for _, job in ipairs(redis.call('ZRANGE', KEYS[index + 1], 0, -1)) do
    local amount, tokens, lowered, limits = string.match(redis.call('HGET', KEYS[2], job) or '', '^(%S+) (%S+) (%S+) %S+ ?(.*)$')
    if amount and amount ~= '-' then
      held = held + tonumber(amount)
      redis.call('HSET', KEYS[2], job, table.concat({amount, tokens, lowered, ARGV[1], limits}, ' '))
    end
  end
  redis.call('DEL', KEYS[index])
  if common ~= '' then redis.call('HSET', KEYS[index], 'common', common) end
end
redis.call('DEL', KEYS[1])
redis.call('HSET', KEYS[1], 'period', ARGV[1], 'spent', ARGV[2], 'held', string.format('%.0f', held), 'from', ARGV[3])
return 1
