-- Raises sums in Redis to the ledger's, unless they were raised meanwhile.
-- KEYS[n] the sum's hash   ARGV[3n-2] the sum's field   ARGV[3n-1] the previously raised amount, as read
-- ARGV[3n] the amount to add
-- Returns 1 for each, or 0 if it was raised meanwhile or no longer exists: read it again.
local max = 9007199254740991
local replies = {}
for index, key in ipairs(KEYS) do
  local field, before, amount = ARGV[3 * index - 2], ARGV[3 * index - 1], tonumber(ARGV[3 * index])
  local sum, raised = unpack(redis.call('HMGET', key, field, 'raised'))
  replies[index] = 0
  if sum and (raised or '') == before then
    redis.call('HSET', key, field, string.format('%.0f', math.min(max, tonumber(sum) + amount)),
      'raised', string.format('%.0f', math.min(max, tonumber(raised or 0) + amount)))
    replies[index] = 1
  end
end
return replies
