-- Removes ended jobs from a queue and claims the next ones. Follows BullMQ's layout (moveToFinished and moveToActive), for many
-- jobs per call, without the parts that nothing here reads: events, results, parents.
-- KEYS[1] wait (list)   KEYS[2] active (list)   KEYS[3] prioritized (sorted set)   KEYS[4] marker (sorted set)
-- KEYS[5] priority counter   KEYS[6] meta (hash)
-- ARGV[1] start of the jobs' keys   ARGV[2] token of this claim   ARGV[3] lifetime of the locks in ms   ARGV[4] max claims
-- ARGV[5] worker id if jobs are begun as they are claimed, or ''   ARGV[6] lease in ms   ARGV[7] attempts allowed
-- ARGV[8] start of the queue's keys   ARGV[9] target of waits in ms, see isNewestFirst in lines.lua; 0: none
-- ARGV[10] how many of them may be of low priority, see flex-lane.lua
-- ARGV[11] share of the claims that jobs of high priority may have while others wait, see high-lane.lua
-- ARGV[12] '' or the account that has most of the worker's slots: then only jobs of others are claimed
-- ARGV[13…] id and token of each ended job
-- Returns whether more jobs wait (1 or 0), then for each claimed job: id, data, priority, number of stalls, why it may no longer
-- run, the reply of beginJob, which is loaded before this, if its state lies on this node, and the route that it was parked for;
-- '' for a missing value.
local function removeEnded(first, last)
  local locks, ended = {}, {}
  for index = first, last, 2 do locks[#locks + 1] = ARGV[1] .. ARGV[index] .. ':lock' end
  for position, token in ipairs(redis.call('MGET', unpack(locks))) do
    local index = first + 2 * (position - 1)
    -- A job whose lock has expired may belong to another worker by now.
    if token == ARGV[index + 1] then
      ended[#ended + 1], ended[#ended + 2] = ARGV[1] .. ARGV[index], locks[position]
      redis.call('LREM', KEYS[2], '-1', ARGV[index])
    end
  end
  if #ended > 0 then redis.call('DEL', unpack(ended)) end
end
-- In chunks: Lua passes at most a few thousand values.
for first = 13, #ARGV, 1000 do removeEnded(first, math.min(first + 999, #ARGV)) end
local reply = {0}
-- Resuming the queue sets the marker for waiting jobs again.
if redis.call('HEXISTS', KEYS[6], 'paused') == 1 then return reply end
local isMore, claimed, lines = true, 0, nil
local function queueLines()
  lines = lines or openLines(ARGV[8], ARGV[1])
  return lines
end

-- Claims a job, which is in `active` already.
local function claim(id)
  claimed = claimed + 1
  local job = ARGV[1] .. id
  redis.call('SET', job .. ':lock', ARGV[2], 'PX', ARGV[3])
  local fields = redis.call('HMGET', job, 'data', 'priority', 'stc', 'defa', 'state', 'parked')
  reply[#reply + 1] = id
  for field = 1, 4 do reply[#reply + 1] = fields[field] or '' end
  local begins = ARGV[5] ~= '' and fields[5] and not fields[4]
  reply[#reply + 1] = begins and beginJob(fields[5], ARGV[5], ARGV[6], ARGV[7], '1', ARGV[2]) or ''
  reply[#reply + 1] = fields[6] or ''
end

-- Most queues have none of low or high priority, and none with a priority of BullMQ's: they are asked for all of them at once.
local flexJobs, highLines, flex, high = ARGV[8] .. 'flex:due', ARGV[8] .. 'high:lines', nil, nil
local hasOthers = redis.call('EXISTS', flexJobs, highLines, KEYS[3], KEYS[5]) > 0
if hasOthers and redis.call('EXISTS', flexJobs, highLines) > 0 then
  flex = redis.call('EXISTS', flexJobs) == 1 and openFlexLane(ARGV[8], ARGV[1])
  high = redis.call('EXISTS', highLines) == 1 and openHighLane(ARGV[8], ARGV[1], tonumber(ARGV[11]))
end
if flex then flex.promote(queueLines, now, time) end
local wanted, target, dominant = tonumber(ARGV[4]), tonumber(ARGV[9]), ARGV[12]

-- Takes a job without a priority that is not of the dominant account. Only the newest are looked at: what is before them is a burst
-- whose jobs got none, as the queue had not seen it yet.
local function takeBeside()
  local newest = redis.call('LRANGE', KEYS[1], 0, 15)
  for index = #newest, 1, -1 do
    local data = redis.call('HGET', ARGV[1] .. newest[index], 'data')
    local owner = data and string.match(data, '"account":"([^"]*)"')
    if owner and owner ~= dominant then
      redis.call('LREM', KEYS[1], 1, newest[index])
      return newest[index]
    end
  end
end

while dominant ~= '' and claimed < wanted do
  local id = takeBeside() or hasOthers and redis.call('EXISTS', KEYS[3]) == 1 and queueLines().claimBeside(dominant)
  if not id then break end
  redis.call('LPUSH', KEYS[2], id)
  claim(id)
end
while dominant == '' and claimed < wanted do
  local fromLine = high and high.claimNext(now, target, KEYS[1])
  local id = fromLine or redis.call('RPOPLPUSH', KEYS[1], KEYS[2])
  if not id then
    isMore = hasOthers and redis.call('EXISTS', KEYS[3]) == 1
    if not isMore then
      if hasOthers then redis.call('DEL', KEYS[5]) end
      break
    end
    fromLine = queueLines().claimNext(now, target, high and high.length() > 0)
    id = fromLine
  end
  if fromLine then redis.call('LPUSH', KEYS[2], id) end
  claim(id)
end
isMore = isMore and redis.call('LLEN', KEYS[1]) + (hasOthers and redis.call('ZCARD', KEYS[3]) or 0) > 0
if lines then lines.close() end
if high then high.close() end
if flex then
  local spare = tonumber(ARGV[10])
  while claimed < wanted and spare > 0 do
    local id = flex.claimNext(now)
    if not id then break end
    redis.call('LPUSH', KEYS[2], id)
    claim(id)
    spare = spare - 1
  end
  flex.close()
  -- Another worker may have slots to spare, or another claim of this one, whose jobs have ended: it may be waiting with their slots.
  -- A claim with neither wakes nobody, or claims without slots to spare would wake each other for ever.
  if (tonumber(ARGV[10]) > 0 or #ARGV > 12) and not flex.isEmpty() then redis.call('ZADD', KEYS[4], '0', '0') end
end
-- What is claimed while others wait, by which the rate of the queue is measured.
if claimed > 0 and (isMore or lines or high) then redis.call('HINCRBY', ARGV[8] .. 'fairness', 'claimed', claimed) end
if isMore then
  reply[1] = 1
  -- Wakes another worker. One that is full looks so often that it must not, and takes no marker either.
  if dominant == '' then redis.call('ZADD', KEYS[4], '0', '0') end
end
return reply
