-- Marks the resource that a job is as deleted, and drops what it has said. Its state stays for its settlement and record.
-- KEYS[1] job state (hash)   KEYS[2] answer log (stream)
-- ARGV[1] how long the state may stay at most, in ms
-- Answers 1, or 0 where there is no state.
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
redis.call('UNLINK', KEYS[2])
redis.call('HDEL', KEYS[1], 'request')
redis.call('HSET', KEYS[1], 'deleted', 1)
if redis.call('PTTL', KEYS[1]) > tonumber(ARGV[1]) then redis.call('PEXPIRE', KEYS[1], ARGV[1]) end
return 1
