import { blobStorageKey } from '../redis/keys.ts';
import type { RedisClient } from '../redis/redis.ts';
import type { Logger } from '../runtime/log.ts';
import { SharedClaim } from '../runtime/shared-claim.ts';
import type { Blobs } from './blobs.ts';

/**
 * Ensures that all processes of one Redis use the same blob storage: a job names blobs, and a process that looks for them
 * elsewhere would lose it.
 * @throws ConfigError when the other processes of this Redis use a different storage.
 */
export function claimStorage(redis: RedisClient, blobs: Blobs, log: Logger): Promise<SharedClaim> {
  return SharedClaim.open({
    ...{ redis, log, key: blobStorageKey, identity: blobs.identity },
    contradiction: "another process on this Redis uses a different blob storage; neither can read the other's files",
    refusal: `The other processes on this Redis keep their files elsewhere than ${blobs.location}: give all of them the same SLUICE_DATA_DIR (a shared volume) or the same BLOBS_URL (after a move, stop all and wait a minute).`,
  });
}
