-- Renews the locks of taken jobs. One that has run out stays so.
-- KEYS the locks   ARGV[1] lifetime in ms   ARGV[n + 1] token of the taking of the nth
for index, lock in ipairs(KEYS) do
  if redis.call('GET', lock) == ARGV[index + 1] then redis.call('PEXPIRE', lock, ARGV[1]) end
end
return 1
