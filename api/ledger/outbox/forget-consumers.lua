-- Deletes dead consumers: idle for long, without pending entries (which are taken over first, as they would be deleted, too).
-- KEYS[1] outbox (stream)   ARGV[1] consumer group   ARGV[2] idle time in ms
-- ARGV[3] the caller's own name when it leaves, which is deleted whatever its idle time, else ''
-- Returns the number deleted.
local removed = 0
for _, consumer in ipairs(redis.call('XINFO', 'CONSUMERS', KEYS[1], ARGV[1])) do
  local facts = {}
  for index = 1, #consumer, 2 do facts[consumer[index]] = consumer[index + 1] end
  local isGone = tonumber(facts.idle) >= tonumber(ARGV[2]) or facts.name == ARGV[3]
  if isGone and tonumber(facts.pending) == 0 then
    redis.call('XGROUP', 'DELCONSUMER', KEYS[1], ARGV[1], facts.name)
    removed = removed + 1
  end
end
return removed
