-- Whether a time that was noted earlier is ahead of now: Redis's clock was ahead, and has been put right. What was noted with it is
-- no longer true, and would be for as long as it was ahead. Clocks of a Redis and its replica may be apart by less. See script.ts.
local maxAheadMs = 60000
local function isAhead(time, now) return tonumber(time or 0) > now + maxAheadMs end
