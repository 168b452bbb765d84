import { createHmac, randomBytes } from 'node:crypto';
import { databaseKey, signingKey } from '../redis/keys.ts';
import type { RedisClient } from '../redis/redis.ts';
import type { Logger } from '../runtime/log.ts';
import { SharedClaim } from '../runtime/shared-claim.ts';
import type { Database } from './database.ts';
import { type Secrets, valueOfDatabase } from './secrets.ts';

/**
 * Ensures that all apis and ledgers of one Redis use the same database: each would write the records of the other's jobs, and raise
 * Redis to a ledger that knows neither the other's accounts nor what they have spent. A copy of a database counts as the same.
 * @throws ConfigError when the other processes of this Redis use a different database.
 */
export async function claimDatabase(redis: RedisClient, db: Database, log: Logger): Promise<SharedClaim> {
  const id = await valueOfDatabase(db, 'database-id', () => randomBytes(16));
  return await SharedClaim.open({
    ...{ redis, log, key: databaseKey, identity: id.toString('hex') },
    contradiction: "another process on this Redis uses a different database; each writes records of the other's jobs",
    refusal:
      'The other processes on this Redis use another database: give all of them the same DATABASE_URL, or without it the same SLUICE_DATA_DIR on one host (after a move to an empty database, stop all and wait a minute).',
  });
}

/** Tells in the log if processes sign cookies and links by different secrets, as they do while one is replaced by another. */
export function claimSigning(redis: RedisClient, secrets: Secrets, log: Logger): Promise<SharedClaim> {
  const identity = createHmac('sha256', secrets.get('sessions')).update('sluice claim').digest('hex');
  return SharedClaim.open({
    ...{ redis, log, key: signingKey, identity },
    contradiction:
      'another process on this Redis has another SLUICE_SECRET, or had it within the last minute: each takes the cookies, links and authenticators of the other for forged ones',
  });
}
