-- Stores refused requests for a time: the newest of each account, and the newest in all.
-- KEYS[1] the requests (hash, by id)   KEYS[2] all of them (sorted set of `id account`, by time)
-- KEYS[3] prefix of the accounts' sorted sets (ids, by time); all share a hash tag
-- ARGV[1] lifetime in ms   ARGV[2] maximum of an account   ARGV[3] maximum in all, then three of each: id, account, request
-- Returns the excess over the maximum in all; negative if there is room.
local rows, all, accounts = KEYS[1], KEYS[2], KEYS[3]
local lifetime, maxOfAccount, maxInAll = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local time = redis.call('TIME')
local milliseconds = time[1] * 1000 + math.floor(time[2] / 1000)
local now = string.format('%.0f', milliseconds)
local oldest = string.format('%.0f', milliseconds - lifetime)

local function forget(members)
  for _, member in ipairs(members) do
    local id, account = string.match(member, '^(%S+) (.*)$')
    redis.call('HDEL', rows, id)
    redis.call('ZREM', accounts .. account, id)
    redis.call('ZREM', all, member)
  end
end

for index = 4, #ARGV, 3 do
  local id, account, row = ARGV[index], ARGV[index + 1], ARGV[index + 2]
  local own = accounts .. account
  redis.call('HSET', rows, id, row)
  redis.call('ZADD', all, now, id .. ' ' .. account)
  redis.call('ZADD', own, now, id)
  redis.call('PEXPIRE', own, lifetime)
  local over = redis.call('ZCARD', own) - maxOfAccount
  if over > 0 then
    for _, first in ipairs(redis.call('ZRANGE', own, 0, over - 1)) do forget({first .. ' ' .. account}) end
  end
end

forget(redis.call('ZRANGEBYSCORE', all, '-inf', oldest, 'LIMIT', 0, 1000))
local over = redis.call('ZCARD', all) - maxInAll
if over > 0 then forget(redis.call('ZRANGE', all, 0, over - 1)) end
redis.call('PEXPIRE', rows, lifetime)
redis.call('PEXPIRE', all, lifetime)
return over
