-- Loads an account from the database into admission, unless it is loaded already.
-- KEYS[1] the account (hash)   ARGV[1] name of this load   ARGV[2] credit, or ''   ARGV[3] charged   ARGV[4] '1' or '0'
-- Returns 1 if it is loaded now; 0 if the account changed since the load began: read it again.
if redis.call('HEXISTS', KEYS[1], 'credit') == 1 then return 1 end
if redis.call('HGET', KEYS[1], 'loading') ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[1], 'credit', ARGV[2], 'charged', ARGV[3], 'suspended', ARGV[4])
redis.call('HDEL', KEYS[1], 'loading')
return 1
