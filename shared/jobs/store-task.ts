import { jobKeys } from '../redis/keys.ts';
import type { RedisClient } from '../redis/redis.ts';
import { loadScript, untilAccepted } from '../redis/script.ts';
import type { Ownership } from './append.ts';
import { taskText, type VendorTask } from './vendor-task.ts';

const script = loadScript<Ownership>(new URL('./store-task.lua', import.meta.url));

/**
 * Stores a vendor's task in its job's state, on behalf of the attempt that created it. If the result is not `ok`, the task is
 * no longer needed. See store-task.lua.
 */
export function storeTask(redis: RedisClient, jobId: string, task: VendorTask): Promise<Ownership> {
  return untilAccepted(() => script(redis, [jobKeys.state(jobId)], [task.attempt, taskText(task)]));
}
