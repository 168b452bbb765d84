-- Tells admission what an API key has spent in the running period of its budget, unless it knows that by now.
-- KEYS[1] budget (hash)   ARGV[1] period   ARGV[2] spent in it
if redis.call('EXISTS', KEYS[1]) == 0 then
  redis.call('HSET', KEYS[1], 'period', ARGV[1], 'spent', ARGV[2], 'held', 0)
end
return 1
