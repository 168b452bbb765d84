-- Lets the states of settled jobs expire.
-- KEYS[n] job state (hash)   ARGV[n] its lifetime from now in ms
for index = 1, #KEYS do redis.call('PEXPIRE', KEYS[index], ARGV[index]) end
return #KEYS
