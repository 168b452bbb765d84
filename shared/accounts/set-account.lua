-- Changes an account in admission. An account that is not loaded stays so, and one being loaded is read again.
-- KEYS[1] the account (hash)   ARGV[1] field   ARGV[2] its value
redis.call('HDEL', KEYS[1], 'loading')
if redis.call('HEXISTS', KEYS[1], 'credit') == 1 then redis.call('HSET', KEYS[1], ARGV[1], ARGV[2]) end
return 1
