-- Prepended to the scripts that read leases or end them. A job's lease is the field "lease" of its state. Once its vendor has been
-- silent for some seconds ("silent" in the state), it is an entry in the hash "leases" of the job's tag, where one command
-- renews those of many jobs: until when, attempt, last sequence number, deadline. Nothing was appended while the entry stands.

-- The leases of a job's tag, and the job's name in them, by the key of its state.
local function leasesOf(key)
  local tag, job = string.match(key, '^(.-)job:(.*)$')
  return tag .. 'leases', job
end

-- Until when an attempt owns a job without renewing its lease; 0: not at all.
-- lease, silent: these fields of its state
local function leaseOf(key, lease, silent)
  local own = tonumber(lease or 0)
  if not silent then return own end
  local entry = redis.call('HGET', leasesOf(key))
  return math.max(own, tonumber(entry and string.match(entry, '^%d+') or 0))
end

-- The lease is the field of the state again, which the caller has written.
local function endSilence(key, silent)
  if not silent then return end
  redis.call('HDEL', leasesOf(key))
  redis.call('HDEL', key, 'silent')
end

-- Calls `work` for the jobs of each tag in KEYS: with the tag's leases, the jobs' names in them, and the index of the first; until
-- it returns something, which this returns.
local function eachTag(work)
  local first = 1
  while KEYS[first] do
    local leases, job = leasesOf(KEYS[first])
    local jobs, tag = {}, leases
    while tag == leases do
      jobs[#jobs + 1] = job
      if not KEYS[first + #jobs] then break end
      tag, job = leasesOf(KEYS[first + #jobs])
    end
    local result = work(leases, jobs, first)
    if result then return result end
    first = first + #jobs
  end
end
