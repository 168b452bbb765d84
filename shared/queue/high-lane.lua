-- Jobs of high priority. They are in the queue, or in a route's line, as the others are, with scores below theirs, and in fair lines
-- of their own. They are claimed before the others up to a share of the claims, so that the others go on. Preceded by lines.lua.
-- root, jobs, parked: as openLines
-- share: of the claims, while others wait
local function openHighLane(root, jobs, share, parked)
  local lane, clock, prioritized = root .. 'high:', root .. 'fairness', parked or jobs .. 'prioritized'
  local lines = openLines(lane, jobs, prioritized, true)
  -- Scores of the lane; see lines.lua.
  local lowest, above = 2048, 4294967296
  -- What others are owed of each claim of the lane, and all that they are owed: from one claim on it is their turn.
  local owedEach, owed = (1 - share) / share, nil
  local whole = 1 - 1e-9
  local hasClaimed = false

  local function length() return redis.call('ZCOUNT', prioritized, lowest, '(' .. above) end

  -- Nothing is left of the lane once no job waits in it. Returns whether none does.
  local function clear()
    if length() > 0 then return false end
    -- Lines are left only by workers of the release before, which take jobs out of the sorted set alone.
    for _, account in ipairs(redis.call('ZRANGE', lane .. 'lines', 0, 999)) do redis.call('DEL', lane .. 'line:' .. account) end
    redis.call('DEL', lane .. 'lines', lane .. 'left', lane .. 'finished', lane .. 'fairness', lane .. 'pc')
    return true
  end

  local function readOwed()
    owed = owed or tonumber(redis.call('HGET', clock, 'owed') or 0)
    return owed
  end

  -- Adds a job. The queue knows by `owed` that it has had one.
  local function join(account, id, time, key)
    if not parked then redis.call('HSETNX', clock, 'owed', '0') end
    return lines.join(account, id, time, key)
  end

  -- Takes a job that has left unserved out of its line.
  local function leave(account, id, givenUpAt, key)
    lines.leave(account, id, givenUpAt, key)
    clear()
  end

  -- Whether the next claim is the lane's. Notes what others are owed for it.
  local function isNext(othersWait)
    if not othersWait then return true end
    hasClaimed = true
    if readOwed() >= whole then
      owed = owed - 1
      return false
    end
    owed = owed + owedEach
    return true
  end

  -- Takes the next job out, if the lane has one and is next.
  -- wait: the list of the queue that precedes others; none of a route
  local function claimNext(time, target, wait)
    if length() == 0 then return end
    local next = wait and redis.call('LINDEX', wait, -1)
    -- One that was claimed before goes on first, from there.
    if next and redis.call('HEXISTS', jobs .. next, 'high') == 1 then return end
    if not isNext(next or redis.call('ZCOUNT', prioritized, above, '+inf') > 0) then return end
    return lines.claimNext(time, target)
  end

  -- Ends the claims of one call.
  local function close()
    if hasClaimed then redis.call('HSET', clock, 'owed', string.format('%.17g', owed)) end
    if not clear() then lines.close() end
  end

  -- The number of jobs that are claimed before one of the lane.
  -- others: how many of others wait
  local function ahead(account, id, others)
    local number = lines.ahead(account, id)
    return number and number + math.min(others, math.floor(readOwed() + number * owedEach + 1e-9))
  end

  -- The number of jobs of the lane that are claimed before another one, which has so many others before it.
  local function aheadOfOther(others)
    return math.min(length(), math.max(0, math.ceil((others + 1 - readOwed()) / owedEach - 1e-9)))
  end

  return {join = join, leave = leave, claimNext = claimNext, close = close, length = length, ahead = ahead, aheadOfOther = aheadOfOther}
end
