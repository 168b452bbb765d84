-- Loads an account from the database into admission, unless it is loaded already.
-- KEYS[1] the account (hash)   KEYS[2] name of the load in progress (string)
-- ARGV[1] name of this load   ARGV[2] credit, or ''   ARGV[3] charged   ARGV[4] '1' if it is suspended, or '0'
-- ARGV[5] its weight in queues   ARGV[6] '1' if its keys share its turns in queues, or '0'
-- ARGV[7] the highest priority of its requests
-- Returns 1 if it is loaded now; 0 if the account changed, or the name expired, since the load began: read it again.
local account, loading = KEYS[1], KEYS[2]
local name, credit, charged, suspended = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
if redis.call('HEXISTS', account, 'credit') == 0 then
  if redis.call('GET', loading) ~= name then return 0 end
  redis.call('HSET', account, 'credit', credit, 'charged', charged, 'suspended', suspended, 'weight', ARGV[5], 'by_key', ARGV[6],
    'priority', ARGV[7])
end
redis.call('DEL', loading)
return 1
