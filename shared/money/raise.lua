-- Raises sums that Redis keeps to what the ledger knows, where nobody else has raised them meanwhile.
-- KEYS[n] the hash that has the sum   ARGV[3n-2] the sum's field   ARGV[3n-1] what had been raised of it before, as it was read
-- ARGV[3n] by how much
-- Returns for each 1, or 0 where it was raised meanwhile or is not there any more: read it again.
local most = 9007199254740991
local replies = {}
for index, key in ipairs(KEYS) do
  local field, before, amount = ARGV[3 * index - 2], ARGV[3 * index - 1], tonumber(ARGV[3 * index])
  local sum, raised = unpack(redis.call('HMGET', key, field, 'raised'))
  replies[index] = 0
  if sum and (raised or '') == before then
    redis.call('HSET', key, field, string.format('%.0f', math.min(most, tonumber(sum) + amount)),
      'raised', string.format('%.0f', math.min(most, tonumber(raised or 0) + amount)))
    replies[index] = 1
  end
end
return replies
