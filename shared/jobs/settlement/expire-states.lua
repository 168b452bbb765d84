-- Marks job states as settled and lets them expire.
-- KEYS[n] job state (hash)   ARGV[n] its remaining lifetime in ms, or '' to leave it unchanged
for index, key in ipairs(KEYS) do
  local isThere
  if ARGV[index] == '' then isThere = redis.call('EXISTS', key) == 1
  else isThere = redis.call('PEXPIRE', key, ARGV[index]) == 1 end
  if isThere then redis.call('HSET', key, 'settled', '1') end
end
return #KEYS
