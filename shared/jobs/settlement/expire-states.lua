-- Marks the states of jobs as settled, and lets them expire.
-- KEYS[n] job state (hash)   ARGV[n] its lifetime from now in ms, or '' where it is to stay as long as it would
for index, key in ipairs(KEYS) do
  local isThere
  if ARGV[index] == '' then isThere = redis.call('EXISTS', key) == 1
  else isThere = redis.call('PEXPIRE', key, ARGV[index]) == 1 end
  if isThere then redis.call('HSET', key, 'settled', '1') end
end
return #KEYS
