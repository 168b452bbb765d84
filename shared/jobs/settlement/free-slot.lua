-- Frees what a caller notices of an ended job before its settlement: its slot under the limit of its API key, and its
-- idempotency key. The hold stays until settlement. Idempotent.
-- KEYS[1] running set of the job's API key (sorted set)   KEYS[2] idempotency binding (hash)
-- ARGV[1] job id   ARGV[2] '1' when the idempotency binding is to be freed, else '0'
redis.call('ZREM', KEYS[1], ARGV[1])
if ARGV[2] == '1' and redis.call('HGET', KEYS[2], 'job') == ARGV[1] then redis.call('DEL', KEYS[2]) end
return 1
