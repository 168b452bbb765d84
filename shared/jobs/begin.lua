-- Begins jobs claimed from the queue, each independently; see beginJob, which is loaded before this.
-- KEYS[n] job state (hash)
-- ARGV[1] worker id   ARGV[2] lease in ms   ARGV[3] attempts allowed
-- ARGV[2n+2] '1' if the job may be repeated   ARGV[2n+3] identifies this claim of the job
-- Returns beginJob's reply for each, or an error for all of them if Redis refuses to write.
local replies = {}
for index, key in ipairs(KEYS) do
  local reply, refused = beginJob(key, ARGV[1], ARGV[2], ARGV[3], ARGV[2 * index + 2], ARGV[2 * index + 3])
  if refused then return refused end
  replies[index] = reply
end
return replies
