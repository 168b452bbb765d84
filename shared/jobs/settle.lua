-- Settles jobs of one account tag: takes their holds off and puts their records into the outbox, once. No hold, nothing
-- happens.
-- KEYS[1] holds (sorted set)   KEYS[2] outbox (stream)
-- KEYS[2n+1] running set of the job's API key (sorted set)   KEYS[2n+2] idempotency binding (hash)
-- ARGV[3n-2] member of the holds: '<job id> <account> <API key id>'
-- ARGV[3n-1] '1' when the idempotency binding is to be freed, else '0'
-- ARGV[3n] the job's record, or '' where nothing is known of it
-- Answers how many were settled by this call.
local settled = 0
for index = 1, #ARGV / 3 do
  local member, record = ARGV[3 * index - 2], ARGV[3 * index]
  local running, binding = KEYS[2 * index + 1], KEYS[2 * index + 2]
  local job = string.match(member, '^%S+')
  -- The write that frees comes first: Redis lets a script that has written go on when its memory is full.
  if redis.call('ZREM', KEYS[1], member) == 1 then
    settled = settled + 1
    if record ~= '' then redis.call('XADD', KEYS[2], '*', 'r', record) end
  end
  redis.call('ZREM', running, job)
  if ARGV[3 * index - 1] == '1' and redis.call('HGET', binding, 'job') == job then redis.call('DEL', binding) end
end
return settled
