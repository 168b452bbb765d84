-- Notes that the caller of a job is gone without its answer, which a retry may adopt from now on.
-- KEYS[1] job state (hash)   ARGV[1] mark of this leave: a retry that adopts the job may leave it again
-- Returns 1, or 0 if there is no such job.
if redis.call('HEXISTS', KEYS[1], 'readers') == 0 then return 0 end
redis.call('HSET', KEYS[1], 'left', ARGV[1])
return 1
