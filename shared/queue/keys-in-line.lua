-- Shares an account's turns between its API keys, by work, if the account wants that: its line (lines.lua) gives what the account
-- gets, and this decides which of its keys has it. Each key that has jobs in the line has a start tag in a virtual time of the
-- account; the lowest is next. A key that returns begins at the lowest start tag of the others, or where its last claimed job has
-- ended, if that is later; this is forgotten once no key has a job in the line. Prepended to lines.lua.
-- root: start of the queue's keys
local function openKeys(root)
  -- As long as a line.
  local lineMs = 172800000
  -- Jobs that other tools have removed are dropped as they are met, at most so many at a time.
  local maxStale = 16

  local function exact(number) return string.format('%.17g', number) end

  -- The keys by start tag, and where the last claimed job of each has ended.
  local function namesOf(account) return root .. 'keys:' .. account, root .. 'keys-finished:' .. account end

  local function lineOf(account, key) return root .. 'key:' .. account .. ':' .. key end

  -- The start tag of a key that has none.
  local function startTagOf(keys, finished, key)
    local lowest = tonumber(redis.call('ZRANGE', keys, 0, 0, 'WITHSCORES')[2] or 0)
    return math.max(lowest, tonumber(redis.call('HGET', finished, key) or 0))
  end

  -- Notes the job of a key that has joined its account's line.
  local function join(account, key, id)
    local keys, finished = namesOf(account)
    local line = lineOf(account, key)
    if redis.call('RPUSH', line, id) > 1 then return end
    redis.call('ZADD', keys, exact(startTagOf(keys, finished, key)), key)
    redis.call('PEXPIRE', line, lineMs)
    redis.call('PEXPIRE', keys, lineMs)
  end

  -- The next job of an account: the oldest of the key whose turn it is. Nil if none is known.
  -- waits: tells whether a job still waits
  local function next(account, waits)
    local keys = namesOf(account)
    for _ = 1, maxStale do
      local key = redis.call('ZRANGE', keys, 0, 0)[1]
      if not key then return end
      local line = lineOf(account, key)
      local id = redis.call('LINDEX', line, 0)
      if id and waits(id) then return id end
      if id then redis.call('LPOP', line) else redis.call('ZREM', keys, key) end
    end
  end

  -- A job has left the line. Once none of a key's is left, the key leaves; with the last of them all is forgotten.
  local function leave(account, key, id)
    local keys, finished = namesOf(account)
    local line = lineOf(account, key)
    redis.call('LREM', line, 1, id)
    if redis.call('EXISTS', line) == 1 then return end
    redis.call('ZREM', keys, key)
    if redis.call('EXISTS', keys) == 0 then redis.call('DEL', finished) end
  end

  -- A job has been claimed: the next one of its key follows by its work.
  local function serve(account, key, id, work)
    local keys, finished = namesOf(account)
    -- A key whose last job BullMQ's Worker has claimed may have been dropped before that is noted.
    local startTag = tonumber(redis.call('ZSCORE', keys, key) or nil) or startTagOf(keys, finished, key)
    local endsAt = exact(startTag + work)
    redis.call('ZADD', keys, 'XX', endsAt, key)
    redis.call('HSET', finished, key, endsAt)
    for _, name in ipairs({finished, keys, lineOf(account, key)}) do redis.call('PEXPIRE', name, lineMs) end
    leave(account, key, id)
  end

  -- The account's line is empty. What other tools have removed may have left keys.
  local function clear(account)
    local keys, finished = namesOf(account)
    for _, key in ipairs(redis.call('ZRANGE', keys, 0, -1)) do redis.call('DEL', lineOf(account, key)) end
    redis.call('DEL', keys, finished)
  end

  return {join = join, next = next, leave = leave, serve = serve, clear = clear}
end
