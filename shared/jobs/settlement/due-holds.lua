-- Takes holds that are due for inspection. They become due again later, so that sweeping processes inspect different holds,
-- and another process follows one that dies.
-- KEYS[1] holds (sorted set, by when they are inspected next)
-- ARGV[1] maximum number of holds   ARGV[2] delay in ms until they are due again
-- Returns the time in ms, then the holds.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local due = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', string.format('%.0f', now), 'LIMIT', 0, ARGV[1])
local again, scores = string.format('%.0f', now + ARGV[2]), {}
for index, member in ipairs(due) do scores[2 * index - 1], scores[2 * index] = again, member end
if #due > 0 then redis.call('ZADD', KEYS[1], 'XX', unpack(scores)) end
return {string.format('%.0f', now), unpack(due)}
