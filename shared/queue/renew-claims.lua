-- Reports that a worker is alive, and renews the locks of its claims. Expired ones stay expired.
-- KEYS[1] workers (sorted set, by until when they are alive)   KEYS[2…] the locks
-- ARGV[1] id of the worker   ARGV[2] for how many ms it is alive   ARGV[3] lifetime of the locks in ms
-- ARGV[n + 3] token of the nth claim
-- One that has long been dead is removed once its locks have expired, which nothing else would see then.
local forgottenAfter = 600000
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('ZADD', KEYS[1], string.format('%.0f', now + ARGV[2]), ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', string.format('%.0f', now - forgottenAfter))
redis.call('PEXPIRE', KEYS[1], forgottenAfter)
if #KEYS == 1 then return 1 end
for position, token in ipairs(redis.call('MGET', unpack(KEYS, 2))) do
  if token == ARGV[position + 3] then redis.call('PEXPIRE', KEYS[position + 1], ARGV[3]) end
end
return 1
