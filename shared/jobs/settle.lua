-- Settles jobs of one account tag: takes their holds off, once. No hold, nothing happens.
-- KEYS[1] holds (sorted set)
-- KEYS[2n] running set of the job's API key (sorted set)   KEYS[2n+1] idempotency binding (hash)
-- ARGV[2n-1] member of the holds: '<job id> <account> <API key id>'   ARGV[2n] '1' when the idempotency binding is to be freed, else '0'
-- Answers how many were settled by this call.
local settled = 0
for index = 1, #ARGV, 2 do
  local running, binding = KEYS[index + 1], KEYS[index + 2]
  local job = string.match(ARGV[index], '^%S+')
  settled = settled + redis.call('ZREM', KEYS[1], ARGV[index])
  redis.call('ZREM', running, job)
  if ARGV[index + 1] == '1' and redis.call('HGET', binding, 'job') == job then redis.call('DEL', binding) end
end
return settled
