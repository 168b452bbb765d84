-- Records that BullMQ's Worker has claimed a job with a priority, as claim-jobs does for its own. Preceded by keys-in-line.lua and lines.lua.
-- KEYS[1] the virtual clock (hash)
-- ARGV[1] its id in the queue   ARGV[2] its account   ARGV[3] its priority
-- ARGV[4] start of the queue's keys   ARGV[5] start of the jobs' keys
local lines = openLines(ARGV[4], ARGV[5])
lines.note(ARGV[2], ARGV[1], tonumber(ARGV[3]))
lines.close()
return 1
