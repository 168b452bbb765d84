-- refusal tells what went wrong in one of many jobs' pcall from what Redis refuses all of them for now. A part of the scripts
-- that look at many jobs: what it returns is the whole script's reply, whose caller then tries again (see redis-refusal.ts,
-- which has the same codes). That is no loss: Redis refuses before the first write, and each script tolerates a repeat.
-- Returns the error's text, and Redis's own error where it is a refusal. The codes are a table of its own call only, for a
-- script without an error needs none.
local function refusal(thrown)
  local message = type(thrown) == 'table' and thrown.err or tostring(thrown)
  local codes = {'READONLY', 'NOREPLICAS', 'MISCONF', 'OOM', 'LOADING', 'CLUSTERDOWN', 'TRYAGAIN', 'MASTERDOWN', 'BUSY'}
  for _, code in ipairs(codes) do
    -- Up to Redis 6.2 the script's own position comes before it.
    local first = string.find(message, code .. ' ', 1, true)
    if first and (first == 1 or string.find(message, '[%s-]', first - 1) == first - 1) then
      return message, redis.error_reply(string.sub(message, first))
    end
  end
  return message
end
