-- The limits per minute of an API key: each has a bucket of used amounts that drains evenly over a minute. Prepended to admit, after
-- is-ahead.lua.
-- Returns functions over the buckets of one call: fill, which says whether a job fits, and what the buckets are after it; keep,
-- which makes them so for the next job; and write, which writes all that were kept.
-- rate      the key's buckets (hash): fields '<what> <model>'
-- now       ms by Redis's clock
-- keyLimits the key's limits of requests and tokens, 0 for none
local function openBuckets(rate, now, keyLimits)
  local buckets, filled = {}, {}

  local function bucketOf(field)
    local bucket = buckets[field]
    if not bucket then
      local used, at = string.match(redis.call('HGET', rate, field) or '0 0', '^(%S+) (%S+)$')
      bucket = isAhead(at, now) and {0, 0} or {tonumber(used), tonumber(at)}
      buckets[field] = bucket
    end
    return bucket
  end

  -- Returns a bucket's current level and time. Time is monotonic: the clock of a Redis after a failover may be behind.
  local function levelOf(field, limit)
    local bucket = bucketOf(field)
    local time = math.max(now, bucket[2])
    -- After a limit is lowered, the debt is at most two minutes of it.
    return math.max(0, math.min(bucket[1], 2 * limit) - (time - bucket[2]) * limit / 60000), time
  end

  -- Formats the rest of a limit for the reply.
  local function leftOf(limit, level)
    return string.format('%.0f %.0f ', math.max(0, math.floor(limit - level)), level * 60000 / limit)
  end

  -- The rest of the key's limits for a job refused by a limit; by a model's limit, the rest of that one.
  local function leftOfRefused(refusing, limit, level)
    local left = ''
    for index, field in ipairs({'requests ', 'tokens '}) do
      local own = tonumber(keyLimits[index])
      if refusing == index + 2 then left = left .. leftOf(limit, level)
      elseif own > 0 then left = left .. leftOf(own, (levelOf(field, own)))
      else left = left .. '- - ' end
    end
    return left
  end

  -- Returns the buckets after a job, and the rest of the key's limits; or the limit that refuses it.
  local function fill(limits)
    local modelRequests, modelTokens, tokens, model = string.match(limits, '^(%S+) (%S+) (%S+) (%S+)$')
    tokens = tonumber(tokens)
    local asked, left, levels = {1, tokens, 1, tokens}, '', {}
    for index, limit in ipairs({keyLimits[1], keyLimits[2], modelRequests, modelTokens}) do
      limit = tonumber(limit)
      if limit > 0 then
        local what, of = index % 2 == 1 and 'requests' or 'tokens', index > 2 and model or ''
        local field = what .. ' ' .. of
        local level, time = levelOf(field, limit)
        -- More than a minute's worth passes when the bucket is empty, as it would never fit otherwise.
        local taking = math.min(asked[index], limit)
        if level + taking > limit then
          local wait = math.ceil((level + taking - limit) * 60000 / limit)
          return nil, what .. ' ' .. limit .. ' ' .. wait .. ' ' .. asked[index] .. ' ' .. of, leftOfRefused(index, limit, level)
        end
        levels[field] = {level + taking, time}
        if index <= 2 then
          left = left .. leftOf(limit, level + taking)
        end
      elseif index <= 2 then
        left = left .. '- - '
      end
    end
    return levels, left, tokens
  end

  local function keep(levels)
    for name, level in pairs(levels) do buckets[name], filled[name] = level, level end
  end

  local function write()
    local fields = {}
    for name, level in pairs(filled) do
      fields[#fields + 1], fields[#fields + 2] = name, string.format('%.3f %.0f', level[1], level[2])
    end
    if #fields == 0 then return end
    redis.call('HSET', rate, unpack(fields))
    redis.call('PEXPIRE', rate, 180000)
  end

  return {fill = fill, keep = keep, write = write}
end
