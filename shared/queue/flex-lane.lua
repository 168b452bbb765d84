-- Jobs of low priority. They wait beside the queue, in fair lines of their own, and are claimed when nothing else waits and their
-- worker has slots to spare. One that has waited too long for that joins its account's line in the queue. Preceded by keys-in-line.lua and lines.lua.
-- root: start of the queue's keys   jobs: start of BullMQ's
local function openFlexLane(root, jobs)
  local lane = root .. 'flex:'
  local waiting, due = lane .. 'prioritized', lane .. 'due'
  local lines = openLines(lane, jobs, waiting)
  -- Jobs that join the queue at a time, which keeps Redis busy for some milliseconds.
  local atATime = 100

  -- Adds a job, unless too many wait. Returns nil if it was added, else whose jobs are too many: 'full' of all, 'share' of its account.
  -- joinsAt: when it joins the queue, in ms   most, share: how many may wait, of all accounts and of its own   key: as of lines.lua
  local function add(account, id, time, joinsAt, most, share, key)
    if redis.call('ZCARD', waiting) >= most then return 'full' end
    if tonumber(redis.call('ZSCORE', lane .. 'lines', account) or 0) >= share then return 'share' end
    lines.join(account, id, time, key)
    redis.call('ZADD', due, string.format('%.0f', joinsAt), id)
  end

  local function isEmpty() return redis.call('EXISTS', waiting) == 0 end

  -- Nothing is left of the lane once no job waits in it.
  local function clear()
    if isEmpty() then redis.call('DEL', due, lane .. 'fairness', lane .. 'pc') end
  end

  -- Takes a job out that is not run. Returns whether it was here.
  local function remove(account, id, key)
    redis.call('ZREM', due, id)
    if redis.call('ZREM', waiting, id) == 0 then return false end
    if account then lines.leave(account, id, nil, key) end
    clear()
    return true
  end

  -- Moves jobs that have waited too long into the queue.
  -- now: the time in ms   time: as Redis gives it
  local function promote(queueLines, now, time)
    local first = redis.call('ZRANGE', due, 0, 0, 'WITHSCORES')
    if not first[1] or tonumber(first[2]) > now then return end
    for _, id in ipairs(redis.call('ZRANGEBYSCORE', due, '-inf', now, 'LIMIT', 0, atATime)) do
      local account, key = unpack(redis.call('HMGET', jobs .. id, 'account', 'key'))
      if remove(account, id, key) and account then
        redis.call('HDEL', jobs .. id, 'lane')
        queueLines().join(account, id, time, key)
      end
    end
  end

  -- Takes the next job out; nil if there is none. One that another tool has removed is left out.
  local function claimNext(time)
    while true do
      local id = lines.claimNext(time, 0)
      if not id then return end
      redis.call('ZREM', due, id)
      if redis.call('HDEL', jobs .. id, 'lane') == 1 then return id end
    end
  end

  -- Ends the claims of one call.
  local function close()
    lines.close()
    clear()
  end

  return {add = add, remove = remove, promote = promote, claimNext = claimNext, ahead = lines.ahead, isEmpty = isEmpty, close = close}
end
