-- Fair order of the jobs that wait with a priority. Prepended to the scripts that add, claim or remove such jobs.
-- Start-time fair queueing by work: the jobs of an account are its line, oldest first, and the first of a line has a start tag,
-- which is its place in the queue's virtual time: where the account's last claimed job has finished (its start tag plus its work),
-- or the virtual time, if that is later. BullMQ's priority is the start tag minus a base; the other jobs of a line have the last
-- priority, until they are the first. Virtual time is the highest start tag claimed.
-- Which job of a line runs at its start tag is decided when it is claimed. Jobs that leave unserved cost their account nothing.
-- Preceded by keys-in-line.lua.

-- The line of an account's jobs of low priority at a vendor: how its name ends, and what each weighs there, times its work. See
-- park-job.lua; queue-reader.ts reckons with the same.
local lowEnding, lowWeight = ' low', 16

-- All of it is in one function, because most claims find no job with a priority and need nothing of it.
-- root: start of the queue's keys   jobs: start of BullMQ's
-- parked: the sorted set of jobs if it is not the queue's own: those of a route that wait for its vendor
-- isHigh: whether these are the jobs of high priority among them, whose scores are below those of all others; see high-lane.lua
local function openLines(root, jobs, parked, isHigh)
  local clock, prioritized, counter = root .. 'fairness', parked or jobs .. 'prioritized', (parked and root or jobs) .. 'pc'
  local lines, left, finished = root .. 'lines', root .. 'left', root .. 'finished'
  -- BullMQ's score is the priority in units of 2^32, plus a counter that keeps equal ones in order. Here a start tag has parts,
  -- too, in the upper bits of what BullMQ gives to the counter.
  local unit, parts, places = 4294967296, 4096, 1048576
  -- Scores of high priority are those of others divided by 2^21, which changes no digit of them and leaves them below 2^32.
  local accountField, divisor = 'account', 1
  if isHigh then accountField, divisor = 'high', 2097152 end
  -- BullMQ's last priority. Virtual time stays below 1 1/4 * 2^20 above the base, and start tags within 1/2 * 2^20 of it.
  local last, raise, maxFromBase, maxAhead = 2097151, 1048576, 1310720, 524288
  local maxWork = 4096
  -- Jobs lowered at a time, which keeps Redis busy for some milliseconds.
  local atATime = 1000
  -- Members of a line that other tools have removed are dropped as they are met, at most so many at a time.
  local maxStale = 16
  -- Lifetime of a line after its last claim, and of what is known of all: longer than any job may wait. A worker of the release before
  -- may be the last to claim, and removes nothing of it.
  local lineMs = 172800000
  -- Lines that are looked at for a job of another account, and how many jobs wait at most in one that has it: accounts with more have
  -- the turns that their weights give them, and nothing beside.
  local maxBeside, maxFew = 16, 4
  -- Lines that are read for a job's place, the longest first.
  local maxLines = 1000
  local now, base
  -- Whether BullMQ's Worker claims the jobs, among them those of accounts whose keys share turns.
  local isNoted = false
  local hasClaimed = false
  local keys = openKeys(root)

  local function exact(number) return string.format('%.17g', number) end

  -- A score as it is in the sorted set, and as it is computed with.
  local function written(score) return exact(score / divisor) end
  local function read(score) return score and tonumber(score) * divisor end

  local function lineOf(account) return root .. 'line:' .. account end

  -- Reads virtual time and base. There is no priority below 1.
  local function readClock()
    if now then return end
    local times = redis.call('HMGET', clock, 'now', 'base', 'noted')
    base = tonumber(times[2] or 0)
    now = math.max(tonumber(times[1] or 0), base + 1)
    isNoted = times[3] == '1'
  end

  -- The start tag of the first job of a line.
  local function startTagOf(account)
    readClock()
    return math.max(now, tonumber(redis.call('ZSCORE', finished, account) or 0))
  end

  local function scoreOf(tag)
    local priority = math.max(1, math.floor((tag - base) * parts) / parts)
    return priority * unit + redis.call('INCR', counter) % places
  end

  -- Scores behind those of all start tags, in the order of the calls.
  local function scoreBehind() return last * unit + redis.call('INCR', counter) % unit end

  local function waits(id) return redis.call('ZSCORE', prioritized, id) end

  -- The first or last job of a line that waits indeed: its id, when it was queued in ms, and its score.
  -- known: a job that waits, and its score
  local function endOfLine(account, command, known, knownScore)
    local line = lineOf(account)
    for _ = 1, maxStale do
      local found = redis.call(command, line, 0, 0, 'WITHSCORES')
      if not found[1] then return end
      local score = found[1] == known and knownScore or read(waits(found[1]))
      if score then return found[1], tonumber(found[2]) / 1000, score end
      redis.call('ZREM', line, found[1])
      redis.call('ZINCRBY', lines, -1, account)
    end
  end

  -- BullMQ's Worker claims the job that has the start tag. So this makes the job of the key whose turn it is the first of its line,
  -- which has the tag. Returns it.
  -- first, at, score: the present first job
  local function makeFirst(account, first, at, score)
    -- One from before the account's setting runs as the first.
    if redis.call('HEXISTS', jobs .. first, 'key') == 0 then return first end
    local chosen = keys.next(account, waits)
    if not chosen or chosen == first then return first end
    -- The line may have got a tag between the claim of a job and its note.
    if score < last * unit then redis.call('ZADD', prioritized, written(scoreBehind()), first) end
    redis.call('ZADD', lineOf(account), string.format('%.0f', at * 1000 - 1), chosen)
    return chosen
  end

  -- Gives the first job of a line its start tag.
  -- tag: if it is known   key: of the job that has left, if its account shares its turns between keys
  local function bringForward(account, tag, key)
    local first, at, score = endOfLine(account, 'ZRANGE')
    if not first then return end
    -- A line of an account that always has jobs lives on.
    redis.call('PEXPIRE', lineOf(account), lineMs)
    redis.call('PEXPIRE', lines, lineMs)
    readClock()
    if key and isNoted then first = makeFirst(account, first, at, score) end
    redis.call('ZADD', prioritized, written(scoreOf(tag or startTagOf(account))), first)
  end

  -- So many jobs less wait in a line.
  -- key: of one of them, if its account shares its turns between keys
  local function countDown(account, key, number)
    if tonumber(redis.call('ZINCRBY', lines, -number, account)) > 0 then return end
    redis.call('ZREM', lines, account)
    if key then keys.clear(account) end
    redis.call('HDEL', left, account)
    -- Nobody waits who could be owed anything.
    if redis.call('EXISTS', lines) == 0 then redis.call('DEL', finished) end
  end

  -- Virtual time comes to a start tag.
  local function reach(tag)
    now = math.max(now, tag)
    hasClaimed = true
  end

  -- The start tag of a score. One further ahead than allowed was made with the previous base.
  local function tagOfScore(score)
    readClock()
    local tag = base + math.floor(score / unit * parts) / parts
    while tag > now + maxAhead do tag = tag - raise end
    return tag
  end

  -- A job of a line was claimed: the next one of the line follows by its work.
  local function serve(account, id, work, tag, key)
    work = tonumber(work or 1)
    if not work or work ~= work then work = 1 end
    work = math.min(math.max(work, 1 / parts), maxWork)
    local endsAt = tag + work
    reach(tag)
    if key then keys.serve(account, key, id, work) end
    redis.call('ZREM', prioritized, id)
    local number = redis.call('ZREM', lineOf(account), id)
    redis.call('ZADD', finished, exact(endsAt), account)
    bringForward(account, math.max(now, endsAt), key)
    countDown(account, key, number)
  end

  -- Puts a job at the end of its account's line. Returns its priority.
  -- time: as Redis gives it; microseconds keep the order of a burst
  -- key: its API key, if its account shares its turns between keys
  local function join(account, id, time, key)
    local line = lineOf(account)
    local first, _, score = endOfLine(account, 'ZRANGE')
    -- A line is without a start tag if its first job has left otherwise: to BullMQ's Worker, which notes it after, to a worker of the
    -- release before, to BullMQ's tools.
    if first and score >= last * unit then bringForward(account) end
    local own = scoreBehind()
    if not first then own = scoreOf(startTagOf(account)) end
    redis.call('ZADD', prioritized, written(own), id)
    redis.call('ZADD', line, string.format('%.0f', time[1] * 1000000 + time[2]), id)
    local waiting = redis.call('ZCARD', line)
    redis.call('ZADD', lines, waiting, account)
    if key then keys.join(account, key, id) end
    if waiting == 1 then
      redis.call('PEXPIRE', line, lineMs)
      redis.call('PEXPIRE', lines, lineMs)
    end
    return string.format('%.0f', math.floor(own / unit))
  end

  -- Takes a job that has left the queue unserved out of its line.
  -- givenUpAt: if its caller has given it up, the time   key: as of `join`
  local function leave(account, id, givenUpAt, key)
    local line = lineOf(account)
    if redis.call('ZREM', line, id) == 0 then return end
    if key then keys.leave(account, key, id) end
    if givenUpAt then redis.call('HSET', left, account, string.format('%.0f', givenUpAt)) end
    local _, _, score = endOfLine(account, 'ZRANGE')
    if score and score >= last * unit then bringForward(account, nil, key) end
    countDown(account, key, 1)
  end

  -- Whether the newest job of a line runs first: its oldest has waited longer than the target (CoDel), and callers have given up
  -- jobs of it of late, so those that have waited longest are the next to be given up. Patient callers are served in order.
  local function isNewestFirst(account, oldestAt, time, target)
    if target == 0 or time - oldestAt <= target then return false end
    local givenUpAt = tonumber(redis.call('HGET', left, account) or nil)
    return givenUpAt and time - givenUpAt < 3 * target
  end

  -- Takes the next job out of the queue; nil if none has a priority.
  -- skipsHigh: whether those of high priority, which would be the first, are left
  local function claimNext(time, target, skipsHigh)
    local first = skipsHigh and redis.call('ZRANGEBYSCORE', prioritized, unit, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
    local id, score = unpack(first or redis.call('ZRANGE', prioritized, 0, 0, 'WITHSCORES'))
    if not id then return end
    score = read(score)
    local account, work, key = unpack(redis.call('HMGET', jobs .. id, accountField, 'work', 'key'))
    if not account or score < unit then
      -- One that BullMQ has added, or that was parked again, is in no line.
      redis.call('ZREM', prioritized, id)
      reach(tagOfScore(score))
      return id
    end
    local chosen, oldestAt = endOfLine(account, 'ZRANGE', id, score)
    if chosen and isNewestFirst(account, oldestAt, time, target) then
      chosen = endOfLine(account, 'ZREVRANGE')
    elseif key then
      chosen = keys.next(account, waits) or chosen
    end
    chosen = chosen or id
    if chosen ~= id then work, key = unpack(redis.call('HMGET', jobs .. chosen, 'work', 'key')) end
    serve(account, chosen, work, score < last * unit and tagOfScore(score) or startTagOf(account), key)
    return chosen
  end

  -- Takes a job of an account with few jobs, other than this one, out of the queue; nil if the first lines have none. It is for a slot
  -- beside all, so that it is nobody's turn, and costs its account nothing.
  local function claimBeside(account)
    local firsts = redis.call('ZRANGEBYSCORE', prioritized, unit, '(' .. written(last * unit), 'LIMIT', 0, maxBeside)
    for _, id in ipairs(firsts) do
      local owner, key = unpack(redis.call('HMGET', jobs .. id, accountField, 'key'))
      if owner and owner ~= account and tonumber(redis.call('ZSCORE', lines, owner) or 0) <= maxFew then
        local chosen = key and keys.next(owner, waits) or id
        if chosen ~= id then key = redis.call('HGET', jobs .. chosen, 'key') end
        redis.call('ZREM', prioritized, chosen)
        leave(owner, chosen, nil, key)
        return chosen
      end
    end
  end

  -- Records that BullMQ's Worker has claimed a job at a priority. Its line may have dropped it since, so its hash tells whether it has
  -- been noted; or the hash may have ended.
  local function note(account, id, priority)
    local job = jobs .. id
    local work, key = unpack(redis.call('HMGET', job, 'work', 'key'))
    readClock()
    if key and not isNoted then
      isNoted = true
      redis.call('HSET', clock, 'noted', '1')
    end
    if redis.call('HDEL', job, 'account') == 1 or redis.call('ZSCORE', lineOf(account), id) then
      serve(account, id, work, startTagOf(account), key)
    else
      reach(tagOfScore(priority * unit))
    end
  end

  -- The number of jobs that are claimed before a waiting one, if all have equal work.
  local function ahead(account, id)
    local score = read(redis.call('ZSCORE', prioritized, id))
    if not score then return end
    local place = account and redis.call('ZRANK', lineOf(account), id)
    if not place or score < last * unit then return redis.call('ZRANK', prioritized, id) end
    -- In each round every line gives one; those below priority 1 precede them all.
    local number = redis.call('ZCOUNT', prioritized, '-inf', '(' .. written(unit)) - 1
    local lengths = redis.call('ZREVRANGE', lines, 0, maxLines - 1, 'WITHSCORES')
    for index = 2, #lengths, 2 do
      local isLow = string.sub(lengths[index - 1], -#lowEnding) == lowEnding
      number = number + math.min(lengths[index], (isLow and math.floor(place / lowWeight) or place) + 1)
    end
    return number
  end

  -- Writes the clock, and keeps the queue's priorities below BullMQ's limit.
  local function writeClock()
    local lowest = (now - base + maxAhead + 1) * unit
    if now - base >= maxFromBase then
      base = base + raise
      lowest = unit
    end
    redis.call('HSET', clock, 'now', exact(now), 'base', exact(base))
    redis.call('ZREMRANGEBYSCORE', finished, '-inf', exact(now))
    redis.call('PEXPIRE', finished, lineMs)
    if base == 0 then return end
    -- At a new base all start tags must be lowered. Lowering the first ones first keeps the order: the next call comes long
    -- before they are all claimed. (The jobs' hashes keep the old priority.)
    local highest = '(' .. written(last * unit)
    local waiting = redis.call('ZRANGEBYSCORE', prioritized, written(lowest), highest, 'WITHSCORES', 'LIMIT', 0, atATime)
    if #waiting == 0 then return end
    local lowered = {}
    for index = 1, #waiting, 2 do
      local score = read(waiting[index + 1])
      local down = math.min(raise, math.floor(score / unit) - 1) * unit
      lowered[index], lowered[index + 1] = written(score - down), waiting[index]
    end
    redis.call('ZADD', prioritized, unpack(lowered))
  end

  -- Ends the claims of one call. What other tools have left of lines goes once no job has a priority; `served` is of the release
  -- before.
  local function close()
    if hasClaimed then writeClock() end
    if redis.call('EXISTS', prioritized) == 0 then redis.call('DEL', lines, left, finished, root .. 'served') end
  end

  return {join = join, leave = leave, claimNext = claimNext, claimBeside = claimBeside, note = note, ahead = ahead, close = close}
end
