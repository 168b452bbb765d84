-- Prepended to the scripts that end jobs, and to those that add readers. While a worker writes the frames of a job into its
-- journal (see write-journal.lua), the field "journal" of the job's state is where those begin that the log lacks: the journal's
-- key, and the number of an entry.

-- The batch of a job in a message of several jobs, if it has one.
local function batchOf(job, message)
  local head, from = job .. ' ', 1
  if string.sub(message, 1, #head) ~= head then
    local found = string.find(message, '\n\n' .. head, 1, true)
    if not found then return nil end
    from = found + 2
  end
  local to = string.find(message, '\n\n', from, true)
  return string.sub(message, from + #head, to and to - 1 or -1)
end

-- What has been read of each journal: all jobs of this call need the same entries.
local readJournals = {}

-- The batches of all jobs in entries, by job: worth its cost from the second job on.
local function batchesByJob(entries)
  local byJob = {}
  for _, entry in ipairs(entries) do
    for index = 2, #entry[2], 2 do
      for job, batch in string.gmatch(entry[2][index] .. '\n\n', '(%S+) (.-)\n\n') do
        byJob[job] = byJob[job] or {}
        table.insert(byJob[job], batch)
      end
    end
  end
  return byJob
end

-- The batches of a job in a journal's entries from a number on; those of more than one reader several times.
local function journaledBatches(job, key, number)
  local read = readJournals[key]
  if not read or read.number > number then
    read = {number = number, entries = redis.call('XRANGE', key, string.format('%.0f', number) .. '-0', '+'), jobs = 0}
    readJournals[key] = read
  end
  read.jobs = read.jobs + 1
  if read.jobs > 1 then
    read.byJob = read.byJob or batchesByJob(read.entries)
    return read.byJob[job] or {}
  end
  local batches = {}
  for _, entry in ipairs(read.entries) do
    for index = 2, #entry[2], 2 do batches[#batches + 1] = batchOf(job, entry[2][index]) end
  end
  return batches
end

-- The frames of a job that its log lacks, by its worker's journal.
-- seq: the last one in the log
-- Returns their lines, each with its line break; how many they are; and who served them, if they are any.
local function journaledOf(job, journal, seq)
  local key, number = string.match(journal, '^(%S+) (%d+)$')
  local lines, count, served = {}, 0, nil
  for _, batch in ipairs(journaledBatches(job, key, tonumber(number))) do
    local first, by, text = string.match(batch, '^%d+ (%d+) ?([^\n]*)\n(.*)$')
    if first and tonumber(first) == seq + count + 1 then
      local _, breaks = string.gsub(text, '\n', '')
      lines[#lines + 1] = text .. '\n'
      count, served = count + breaks + 1, by
    end
  end
  return table.concat(lines), count, served
end

-- The same, and keeps further frames of the job out of the journal.
-- lifetime: how long the worker may take to learn of it, in ms
local function takeJournaled(job, journal, seq, lifetime)
  local head = string.match(journal, '^%S+') .. ':head'
  redis.call('HSET', head, job, '1')
  if redis.call('PTTL', head) < 0 then redis.call('PEXPIRE', head, lifetime) end
  return journaledOf(job, journal, seq)
end

-- Tells the worker of a job, by the key of its state, that it has a new reader: one that reads from the log what the worker has
-- published before.
-- worker, journal: these fields of its state
local function tellOfReader(key, worker, journal)
  if not worker or not journal then return end
  local tag, job = string.match(key, '^(.-)job:(.*)$')
  redis.call('PUBLISH', tag .. 'inbox:' .. worker, 'reader ' .. job)
end
