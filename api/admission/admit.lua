-- Admits a job or says what stands against it.
-- KEYS[1] active flag of the API key   KEYS[2] running set of the key (sorted set)   KEYS[3] holds (sorted set)
-- KEYS[4] idempotency binding (hash), or KEYS[2] again without an idempotency key
-- KEYS[5] job state (hash), to be made with the admission; not given on a Cluster, where it lies on another node
-- ARGV[1] job id   ARGV[2] member of the holds   ARGV[3] jobs the key may run at a time
-- ARGV[4] now in ms   ARGV[5] when the sweeper looks at the hold first, in ms
-- ARGV[6] '' or why new work is shed (queue length and memory are known to the caller: they lie under other tags)
-- ARGV[7] hash of the body, or '' without an idempotency key   ARGV[8] lifetime of the binding in ms
-- ARGV[9] lifetime of the state in ms   ARGV[10…] its fields and values
-- Answers {verdict, job id, running}:
--   unknown      the flag is not in Redis: load it from the database and ask again
--   revoked      the key is not valid any more
--   replay, job  the idempotency key is bound to this job, with the same body
--   reused, job  …with another body
--   shed, queue_full   refused for ARGV[6]
--   concurrency  the key runs as many jobs as it may
--   admitted     the job is held
local active = redis.call('GET', KEYS[1])
if not active then return {'unknown', '', 0} end
if active ~= '1' then return {'revoked', '', 0} end
if ARGV[7] ~= '' then
  local bound = redis.call('HMGET', KEYS[4], 'job', 'body')
  if bound[1] and bound[1] ~= ARGV[1] then
    if bound[2] == ARGV[7] then return {'replay', bound[1], 0} end
    return {'reused', bound[1], 0}
  end
end
local running = redis.call('ZCARD', KEYS[2])
if ARGV[6] ~= '' or running >= tonumber(ARGV[3]) then
  -- Unless this is a repeat: the client library sent the call again after a broken connection.
  if redis.call('ZSCORE', KEYS[2], ARGV[1]) then return {'admitted', '', running} end
  return {ARGV[6] ~= '' and ARGV[6] or 'concurrency', '', running}
end
-- Balance and budgets are checked and held here once jobs cost money.
redis.call('ZADD', KEYS[2], ARGV[4], ARGV[1])
redis.call('ZADD', KEYS[3], ARGV[5], ARGV[2])
if ARGV[7] ~= '' then
  redis.call('HSET', KEYS[4], 'job', ARGV[1], 'body', ARGV[7])
  redis.call('PEXPIRE', KEYS[4], ARGV[8])
end
if KEYS[5] then
  redis.call('HSET', KEYS[5], unpack(ARGV, 10))
  redis.call('PEXPIRE', KEYS[5], ARGV[9])
end
return {'admitted', '', running + 1}
