-- Notes a priority that was taken: moves the queue's virtual time on, and keeps its priorities below BullMQ's limit.
-- KEYS[1] the clock (hash: now, base)   KEYS[2] the jobs that wait with a priority (BullMQ's sorted set)
-- ARGV[1] priority of a job that was taken   ARGV[2] how far beyond the virtual time a job may be put
-- ARGV[3] how far from the base the virtual time may go   ARGV[4] what the base is raised by then
-- ARGV[5] how many waiting jobs are brought down at a time
-- A priority is a turn less the base. One that lies further ahead than a job may be put was made with the base before this
-- one: that of a taken job is read so, that of a waiting one brought down.
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
-- BullMQ's score is the priority in units of 2^32, and a counter that keeps equal ones in order. At a new base all waiting
-- jobs are to be brought down. So many at a time keep Redis busy for a moment only, and the first ones first keep the order:
-- the next note comes long before they have all been taken. (Their hashes keep the old priority.)
local waiting = redis.call('ZRANGEBYSCORE', KEYS[2], lowest, '+inf', 'WITHSCORES', 'LIMIT', 0, ARGV[5])
if #waiting == 0 then return end
local lowered = {}
for index = 1, #waiting, 2 do
  local score = tonumber(waiting[index + 1])
  local down = math.min(raise, math.floor(score / 2 ^ 32) - 1) * 2 ^ 32
  lowered[index], lowered[index + 1] = string.format('%.0f', score - down), waiting[index]
end
redis.call('ZADD', KEYS[2], unpack(lowered))
