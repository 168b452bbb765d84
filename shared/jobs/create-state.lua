-- Writes a new job's state, always with an expiry. A repeat writes the same state again.
-- KEYS[1] job state (hash)   ARGV[1] lifetime in ms   ARGV[2…] fields and their values
redis.call('HSET', KEYS[1], unpack(ARGV, 2))
return redis.call('PEXPIRE', KEYS[1], ARGV[1])
