-- Requeues a claimed job as the next one to be claimed: it has already reached the front.
-- KEYS[1] wait (list)   KEYS[2] active (list)   KEYS[3] marker (sorted set)   KEYS[4] the job (hash)   KEYS[5] its lock
-- ARGV[1] id   ARGV[2] token of its claim
if redis.call('GET', KEYS[5]) ~= ARGV[2] then return 0 end
redis.call('DEL', KEYS[5])
if redis.call('LREM', KEYS[2], -1, ARGV[1]) == 0 then return 0 end
redis.call('HSET', KEYS[4], 'priority', 0)
redis.call('RPUSH', KEYS[1], ARGV[1])
redis.call('ZADD', KEYS[3], 0, '0')
return 1
