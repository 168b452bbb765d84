-- Renews the locks of claimed jobs. Expired ones stay expired.
-- KEYS the locks   ARGV[1] lifetime in ms   ARGV[n + 1] token of the nth claim
for index, lock in ipairs(KEYS) do
  if redis.call('GET', lock) == ARGV[index + 1] then redis.call('PEXPIRE', lock, ARGV[1]) end
end
return 1
