-- Records a claimed priority: advances the queue's virtual time and keeps its priorities below BullMQ's limit.
-- KEYS[1] the clock (hash: now, base)   KEYS[2] the jobs waiting with a priority (BullMQ's sorted set)
-- ARGV[1] priority of a claimed job   ARGV[2] maximum distance of a job beyond the virtual time
-- ARGV[3] maximum distance of the virtual time from the base   ARGV[4] amount by which the base is then raised
-- ARGV[5] number of waiting jobs lowered at a time
-- A priority is a start tag minus the base. One further ahead than ARGV[2] allows was computed with the previous base: a claimed
-- job's is read that way, a waiting job's is lowered.
local priority, furthest, raise = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[4])
local clock = redis.call('HMGET', KEYS[1], 'now', 'base')
local now, base = tonumber(clock[1] or 0), tonumber(clock[2] or 0)
while base + priority > now + furthest do priority = priority - raise end
now = math.max(now, base + priority)
local lowest = string.format('%.0f', (now - base + furthest + 1) * 2 ^ 32)
if now - base >= tonumber(ARGV[3]) then
  base = base + raise
  lowest = '-inf'
end
redis.call('HSET', KEYS[1], 'now', string.format('%.0f', now), 'base', string.format('%.0f', base))
-- BullMQ's score is the priority in units of 2^32, plus a counter that keeps equal ones in order. At a new base all waiting
-- jobs must be lowered. The limit keeps Redis busy only briefly, and lowering the first ones first keeps the order: the next
-- call comes long before they are all claimed. (Their hashes keep the old priority.)
local waiting = redis.call('ZRANGEBYSCORE', KEYS[2], lowest, '+inf', 'WITHSCORES', 'LIMIT', 0, ARGV[5])
if #waiting == 0 then return end
local lowered = {}
for index = 1, #waiting, 2 do
  local score = tonumber(waiting[index + 1])
  local down = math.min(raise, math.floor(score / 2 ^ 32) - 1) * 2 ^ 32
  lowered[index], lowered[index + 1] = string.format('%.0f', score - down), waiting[index]
end
redis.call('ZADD', KEYS[2], unpack(lowered))
