-- refusal separates an error of one job's pcall from Redis refusing all of them for now. Included by the scripts that handle
-- many jobs: a refusal becomes the whole script's reply, and the caller retries (see script.ts, which has the same
-- codes). Nothing is lost: Redis refuses before the first write, and each script tolerates a repeat.
-- Returns the error's text, and Redis's own error if it is a refusal. The codes are a table local to the call, as a script
-- without an error needs none.
local function refusal(thrown)
  local message = type(thrown) == 'table' and thrown.err or tostring(thrown)
  local codes = {'READONLY', 'NOREPLICAS', 'MISCONF', 'OOM', 'LOADING', 'CLUSTERDOWN', 'TRYAGAIN', 'MASTERDOWN', 'BUSY'}
  for _, code in ipairs(codes) do
    -- Up to Redis 6.2 the script's own position precedes it.
    local first = string.find(message, code .. ' ', 1, true)
    if first and (first == 1 or string.find(message, '[%s-]', first - 1) == first - 1) then
      return message, redis.error_reply(string.sub(message, first))
    end
  end
  return message
end
