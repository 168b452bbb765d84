-- Changes an account in admission. An account that is not loaded stays so, and one being loaded is read again.
-- KEYS[1] the account (hash)   KEYS[2] name of the load in progress (string)   ARGV[1] field   ARGV[2] its value
local account, loading = KEYS[1], KEYS[2]
local field, value = ARGV[1], ARGV[2]
redis.call('DEL', loading)
if redis.call('HEXISTS', account, 'credit') == 1 then redis.call('HSET', account, field, value) end
return 1
