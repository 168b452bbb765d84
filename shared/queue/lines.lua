-- Fair order of the jobs that wait with a priority. Prepended to the scripts that add, claim or remove such jobs.
-- Start-time fair queueing: each job gets a start tag, which is its place in the queue's virtual time, and BullMQ's priority is
-- the start tag minus a base. Virtual time is the highest start tag claimed. The jobs of an account are its line, oldest first.
-- The start tags of a line follow each other, from the virtual time on, or from the next if the account was served at this one.
-- Which job of the line runs at a start tag is decided when it is claimed. Jobs that leave unserved leave their start tags to
-- those behind them.
--
-- All of it is in one function, because most claims find no job with a priority and need nothing of it.
-- root: start of the queue's keys   jobs: start of BullMQ's
local function openLines(root, jobs)
  local clock, prioritized, lines, left, served = root .. 'fairness', jobs .. 'prioritized', root .. 'lines', root .. 'left',
    root .. 'served'
  -- BullMQ's score is the priority in units of 2^32, plus a counter that keeps equal ones in order.
  local unit = 4294967296
  -- BullMQ accepts priorities up to 2^21 - 1. Virtual time stays below 1 1/4 * 2^20 above the base, and jobs within 1/2 * 2^20
  -- of it.
  local raise, maxFromBase, maxAhead = 1048576, 1310720, 524288
  -- Jobs lowered or moved up at a time, which keeps Redis busy for some milliseconds.
  local atATime = 1000
  -- Members of a line that other tools have removed are dropped as they are met, at most so many at a time; and every so many
  -- additions they are searched for at its front.
  local maxStale, additions = 16, 8
  -- Lifetime of a line after it began: longer than any job may wait.
  local lineMs = 172800000

  local function whole(number) return string.format('%.0f', number) end

  local function startTagOf(score, base) return math.floor(score / unit) + base end

  -- Virtual time, and the base. There is no priority below 1.
  local function readClock()
    local times = redis.call('HMGET', clock, 'now', 'base')
    local base = tonumber(times[2] or 0)
    return math.max(tonumber(times[1] or 0), base + 1), base
  end

  -- The first start tag that a line may have.
  local function firstTag(account, now) return now + redis.call('SISMEMBER', served, account) end

  -- Advances the virtual time to a claimed priority, and keeps the queue's priorities below BullMQ's limit.
  -- accounts: those whose jobs have been claimed at that priority
  local function advance(priority, accounts)
    local before, base = readClock()
    -- One further ahead than allowed was made with the previous base.
    while base + priority > before + maxAhead do priority = priority - raise end
    local now = math.max(before, base + priority)
    if now > before then redis.call('DEL', served) end
    if now == base + priority and #accounts > 0 then redis.call('SADD', served, unpack(accounts)) end
    local lowest = whole((now - base + maxAhead + 1) * unit)
    if now - base >= maxFromBase then
      base = base + raise
      lowest = '-inf'
    end
    redis.call('HSET', clock, 'now', whole(now), 'base', whole(base))
    if base == 0 then return end
    -- At a new base all waiting jobs must be lowered. Lowering the first ones first keeps the order: the next call comes long
    -- before they are all claimed. (Their hashes keep the old priority.)
    local waiting = redis.call('ZRANGEBYSCORE', prioritized, lowest, '+inf', 'WITHSCORES', 'LIMIT', 0, atATime)
    if #waiting == 0 then return end
    local lowered = {}
    for index = 1, #waiting, 2 do
      local score = tonumber(waiting[index + 1])
      local down = math.min(raise, math.floor(score / unit) - 1) * unit
      lowered[index], lowered[index + 1] = whole(score - down), waiting[index]
    end
    redis.call('ZADD', prioritized, unpack(lowered))
  end

  -- The first or last job of a line that waits indeed: its id, when it was queued in ms, and its score.
  -- known: a job that waits, if one is known; it has no score here
  local function endOfLine(line, command, known)
    for _ = 1, maxStale do
      local found = redis.call(command, line, 0, 0, 'WITHSCORES')
      if not found[1] then return end
      if found[1] == known then return known, tonumber(found[2]) / 1000 end
      local score = redis.call('ZSCORE', prioritized, found[1])
      if score then return found[1], tonumber(found[2]) / 1000, score end
      redis.call('ZREM', line, found[1])
    end
  end

  -- Moves the jobs of a line up to where start tags are free. One that is as near as its place in the line allows keeps its own.
  local function closeUp(line, waiting, first, base)
    for from = 0, waiting - 1, atATime do
      local id = redis.call('ZRANGE', line, from, from)[1]
      local score = id and redis.call('ZSCORE', prioritized, id)
      if not score or startTagOf(score, base) > first + from then
        local tag = first + from
        for _, id in ipairs(redis.call('ZRANGE', line, from, from + atATime - 1)) do
          local score = tonumber(redis.call('ZSCORE', prioritized, id) or nil)
          if score then
            if startTagOf(score, base) > tag then
              redis.call('ZADD', prioritized, whole((tag - base) * unit + score % unit), id)
            end
            tag = tag + 1
          else
            redis.call('ZREM', line, id)
          end
        end
        return
      end
    end
  end

  -- Closes the line up once a quarter of it would be free, so that many departures cost little each. Returns the number of its
  -- waiting jobs, and the start tag after the last one's.
  local function tidyLine(line, first, base)
    local newest, _, score = endOfLine(line, 'ZREVRANGE')
    if not newest then return 0, first end
    local waiting, next = redis.call('ZCARD', line), startTagOf(score, base) + 1
    if next - first - waiting > waiting / 4 then
      closeUp(line, waiting, first, base)
      next = startTagOf(redis.call('ZSCORE', prioritized, newest), base) + 1
    end
    return waiting, next
  end

  -- One job less waits in a line. Its next job sets the number right if other tools have removed some.
  local function countDown(account)
    if tonumber(redis.call('ZINCRBY', lines, -1, account)) > 0 then return end
    redis.call('ZREM', lines, account)
    redis.call('HDEL', left, account)
  end

  -- Gives a job the next start tag of its account, and puts it at the end of its line. Returns its priority.
  -- counter: key of BullMQ's priority counter   time: as Redis gives it; microseconds keep the order of a burst
  local function join(account, id, counter, time)
    local line = root .. 'line:' .. account
    -- A line that is not claimed from here (a worker of the previous release, BullMQ's tools) has gone on at its front.
    if time[2] % additions == 0 then endOfLine(line, 'ZRANGE') end
    local now, base = readClock()
    local first = firstTag(account, now)
    local waiting, next = tidyLine(line, first, base)
    local tag = math.max(first, math.min(next, first + waiting))
    local priority = math.min(tag, now + maxAhead) - base
    redis.call('ZADD', prioritized, whole(priority * unit + redis.call('INCR', counter) % unit), id)
    redis.call('ZADD', line, whole(time[1] * 1000000 + time[2]), id)
    if waiting == 0 then redis.call('PEXPIRE', line, lineMs) end
    redis.call('ZADD', lines, waiting + 1, account)
    return whole(priority)
  end

  -- Takes a job that has left the queue out of its line.
  -- givenUpAt: if its caller has given it up, the time
  local function leave(account, id, givenUpAt)
    local line = root .. 'line:' .. account
    if redis.call('ZREM', line, id) == 0 then return end
    if givenUpAt then redis.call('HSET', left, account, whole(givenUpAt)) end
    local now, base = readClock()
    tidyLine(line, firstTag(account, now), base)
    countDown(account)
  end

  -- Whether the newest job of a line runs first: its oldest has waited longer than the target (CoDel), and callers have given up
  -- jobs of it of late, so those that have waited longest are the next to be given up. Patient callers are served in order.
  local function isNewestFirst(account, oldestAt, time, target)
    if target == 0 or time - oldestAt <= target then return false end
    local givenUpAt = tonumber(redis.call('HGET', left, account) or nil)
    return givenUpAt and time - givenUpAt < 3 * target
  end

  -- Decides which job of a line runs at the start tag of one of its jobs, and takes it out of the queue. The job that the start
  -- tag was given to gets that of the chosen one.
  local function choose(account, id, time, target)
    local line = root .. 'line:' .. account
    local chosen, oldestAt = endOfLine(line, 'ZRANGE', id)
    local isNewest = chosen and isNewestFirst(account, oldestAt, time, target)
    if isNewest then chosen = endOfLine(line, 'ZREVRANGE') end
    chosen = chosen or id
    local freed = chosen ~= id and redis.call('ZSCORE', prioritized, chosen)
    redis.call('ZREM', prioritized, chosen)
    redis.call('ZREM', line, chosen)
    if freed then
      -- The newest job keeps the last start tag, from which that of the next job follows.
      local last = isNewest and endOfLine(line, 'ZREVRANGE')
      if last and last ~= id then
        local before = redis.call('ZSCORE', prioritized, last)
        redis.call('ZADD', prioritized, freed, last)
        freed = before
      end
      redis.call('ZADD', prioritized, freed, id)
    end
    countDown(account)
    return chosen
  end

  -- Claims of one call: the highest priority claimed, and the accounts served at it.
  local highest, accounts = 0, {}

  -- Takes the next job out of the queue; nil if none has a priority.
  local function claimNext(time, target)
    local id, score = unpack(redis.call('ZRANGE', prioritized, 0, 0, 'WITHSCORES'))
    if not id then return end
    local priority = math.floor(score / unit)
    if priority > highest then highest, accounts = priority, {} end
    local account = redis.call('HGET', jobs .. id, 'account')
    if account then
      accounts[#accounts + 1] = account
      return choose(account, id, time, target)
    end
    -- One that BullMQ has added, or an api of the previous release, is in no line.
    redis.call('ZREM', prioritized, id)
    return id
  end

  -- Ends the claims of one call. What other tools have left of lines goes once no job has a priority.
  local function close()
    if highest > 0 then advance(highest, accounts) end
    if redis.call('EXISTS', prioritized) == 0 then redis.call('DEL', lines, left, served) end
  end

  return {join = join, leave = leave, advance = advance, claimNext = claimNext, close = close}
end
