-- Begins jobs that were taken from the queue, each by itself; see beginJob, which stands before this.
-- KEYS[n] job state (hash)
-- ARGV[1] worker id   ARGV[2] lease in ms   ARGV[3] attempts allowed
-- ARGV[2n+2] '1' when repeating the job is allowed   ARGV[2n+3] a name for this very claim of the job
-- Returns beginJob's for each, or an error for all of them where Redis refuses to write.
local replies = {}
for index, key in ipairs(KEYS) do
  local reply, refused = beginJob(key, ARGV[1], ARGV[2], ARGV[3], ARGV[2 * index + 2], ARGV[2 * index + 3])
  if refused then return refused end
  replies[index] = reply
end
return replies
