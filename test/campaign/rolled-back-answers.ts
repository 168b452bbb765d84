import type { Redis } from 'ioredis';

/** The state and the log of a job that runs, as Redis had them. */
interface Copy {
  readonly keys: [state: string, log: string];
  readonly dumps: [state: Buffer, log: Buffer];
}

/**
 * Puts a job back to what it was, as a failover to a replica that lags behind does. One that has ended meanwhile, or is not
 * the same attempt's any more, stays as it is: others have been told of that.
 */
const restore = `
local then_, now = ARGV[3], redis.call('HMGET', KEYS[1], 'attempt', 'terminal')
if now[2] or now[1] ~= then_ then return 0 end
for index, key in ipairs(KEYS) do
  redis.call('RESTORE', key, math.max(0, redis.call('PTTL', key)), ARGV[index], 'REPLACE')
end
return 1`;

/** What jobs have said that are in the middle of it. */
export async function copyAnswers(redis: Redis): Promise<(Copy & { attempt: string })[]> {
  const states = await redis.keys('sluice:{a*}:job:*');
  const copies = await Promise.all(
    states.map(async (state) => {
      const log = state.replace(':job:', ':log:');
      const replies = await redis.multi().dumpBuffer(state).dumpBuffer(log).hmget(state, 'attempt', 'terminal').exec();
      const [ofState, ofLog, fields] = (replies ?? []).map(([, reply]) => reply);
      const [attempt, terminal] = (fields ?? []) as (string | null)[];
      if (!(ofState instanceof Buffer && ofLog instanceof Buffer) || attempt == null || terminal != null) return [];
      return [{ keys: [state, log], dumps: [ofState, ofLog], attempt } satisfies Copy & { attempt: string }];
    }),
  );
  return copies.flat() as (Copy & { attempt: string })[];
}

/** Takes back what they have said since. */
export async function restoreAnswers(redis: Redis, copies: Awaited<ReturnType<typeof copyAnswers>>): Promise<void> {
  for (const { keys, dumps, attempt } of copies) await redis.eval(restore, 2, ...keys, ...dumps, attempt);
}
