-- Takes holds that are due to be looked at. They are due again a while later, so that every process that sweeps looks at
-- others, and one that dies over them is followed by another.
-- KEYS[1] holds (sorted set, by when they are looked at next)
-- ARGV[1] how many at most   ARGV[2] after how many ms they are due again
-- Returns the time in ms, then the holds.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local due = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', string.format('%.0f', now), 'LIMIT', 0, ARGV[1])
local again, scores = string.format('%.0f', now + ARGV[2]), {}
for index, member in ipairs(due) do scores[2 * index - 1], scores[2 * index] = again, member end
if #due > 0 then redis.call('ZADD', KEYS[1], 'XX', unpack(scores)) end
return {string.format('%.0f', now), unpack(due)}
