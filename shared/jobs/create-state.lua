-- Writes a new job's state, which never stays without an end of its life. A repeat writes the same again.
-- KEYS[1] job state (hash)   ARGV[1] lifetime in ms   ARGV[2…] fields and their values
redis.call('HSET', KEYS[1], unpack(ARGV, 2))
return redis.call('PEXPIRE', KEYS[1], ARGV[1])
