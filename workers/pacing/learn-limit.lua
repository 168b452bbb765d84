-- Keeps what a vendor's refusal tells about the capacity of one of its keys for a model, for all workers.
-- KEYS[1] what is known of all of them (hash)
-- ARGV[1] the key and model   ARGV[2] ms in which it is not to be called   ARGV[3] requests a minute that the vendor told, or ''
-- ARGV[4] tokens a minute that it told, or ''   ARGV[5] requests a minute that it was asked, as far as is known
-- ARGV[6] maximum number of keys and models   ARGV[7] ms for which a limit is remembered
-- Returns what is known now, as it is kept: until when it is not to be called, requests a minute, tokens a minute, when they were
-- learned, and the requests a minute that the vendor told ('-': unknown).
-- A repeat changes nothing.
-- Preceded by is-ahead.lua.
local known, name, most, rememberMs = KEYS[1], ARGV[1], tonumber(ARGV[6]), tonumber(ARGV[7])
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
-- Calls that are refused soon after each other, in one worker or several, are one sign: a vendor whose minute is used up refuses all
-- until it is over, however few they are. Over a whole minute they are a third less than a vendor takes, not a thousandth of it.
local oneSignMs = 15000
-- Without a word of the vendor, it starts with what was asked: less at each refusal, and more with each minute without (the workers
-- count it as they read).
local decrease, increase = 0.75, 1.25
-- The least to start with: a worker that has made few calls, or was late with them, knows little of what the vendor was asked, and
-- too low a start takes minutes to grow, too high a one some refusals to fall.
local minStart = 60

local function words(text)
  local found = {}
  for word in string.gmatch(text, '%S+') do found[#found + 1] = tonumber(word) or false end
  return unpack(found, 1, 5)
end

local lasts, rpm, tpm, at, promised = 0, nil, nil, nil, nil
local before = redis.call('HGET', known, name)
if before then lasts, rpm, tpm, at, promised = words(before) end
if isAhead(at, now) then lasts, rpm, tpm, at, promised = 0, nil, nil, nil, nil end
local isNewSign = not at or now - at >= oneSignMs
if at and now - at > rememberMs then rpm, tpm, at, promised = nil, nil, nil, nil end
local told, toldTokens = tonumber(ARGV[3]), tonumber(ARGV[4])
if rpm and isNewSign then
  -- It was kept, and refused all the same.
  rpm = math.max(1, rpm * increase ^ ((now - at) / 60000) * decrease)
elseif not rpm and not told and (not toldTokens or tpm and isNewSign) then
  -- The tokens that a vendor has told are not what it refuses for, if they were kept.
  rpm = math.max(minStart, tonumber(ARGV[5]))
end
if told then rpm, promised = math.min(rpm or told, told), told end
if toldTokens then tpm = toldTokens end
if isNewSign or not at then at = now end
local function text(number) return number and string.format('%.3f', number) or '-' end
local value = table.concat({string.format('%.0f', math.max(lasts or 0, now + ARGV[2])), text(rpm), text(tpm), string.format('%.0f', at),
  text(promised)}, ' ')

if not before and redis.call('HLEN', known) >= most then
  local all = redis.call('HGETALL', known)
  for index = 1, #all, 2 do
    local limited, _, _, learned = words(all[index + 1])
    if isAhead(learned, now) or math.max(limited or 0, (learned or 0) + rememberMs) < now then redis.call('HDEL', known, all[index]) end
  end
  -- What does not fit in is known to this worker alone.
  if redis.call('HLEN', known) >= most then return value end
end
redis.call('HSET', known, name, value)
redis.call('PEXPIRE', known, 2 * rememberMs)
return value
