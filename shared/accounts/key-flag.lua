-- Writes an API key's flag: a revocation is final, and a revision never decreases.
-- KEYS[1] the flag   ARGV[1] the key's revision, or 0 for a revoked key
-- Returns the resulting flag.
local flag = redis.call('GET', KEYS[1])
if flag == '0' then return '0' end
if ARGV[1] ~= '0' and flag and tonumber(flag) >= tonumber(ARGV[1]) then return flag end
redis.call('SET', KEYS[1], ARGV[1])
return ARGV[1]
