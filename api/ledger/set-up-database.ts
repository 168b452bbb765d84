import { ensureApiKey, otherBootstrapKeys } from '../../shared/accounts/api-keys.ts';
import { type Config, ConfigError } from '../../shared/config/config.ts';
import { startFailure } from '../../shared/config/start-failure.ts';
import type { Database, TriedDatabase } from '../../shared/database/database.ts';
import { claimDatabase, claimSigning } from '../../shared/database/database-claim.ts';
import { isDatabaseUnreachable } from '../../shared/database/database-error.ts';
import type { Secrets } from '../../shared/database/secrets.ts';
import type { RedisClient } from '../../shared/redis/redis.ts';
import type { Logger } from '../../shared/runtime/log.ts';
import type { SharedClaim } from '../../shared/runtime/shared-claim.ts';
import { ensureOperator } from '../management/sign-in/ensure-operator.ts';
import { DatabaseArrival } from './database-arrival.ts';
import type { RedisWatch } from './redis-watch.ts';

/** What the start of a process has opened before it. */
export interface StartContext {
  readonly config: Config;
  readonly tried: TriedDatabase;
  readonly redis: RedisClient;
  readonly watch: RedisWatch;
  readonly secrets: Secrets;
  readonly log: Logger;
}

/** What this process has claimed; a step that is repeated claims it once. */
interface Claims {
  database?: SharedClaim;
  signing?: SharedClaim;
}

/**
 * Sets up the database and what depends on it; if it is away, as soon as it is there. Without it the process can only serve
 * keys that others have read, and only from a Redis that has lost nothing since it was raised to the ledger.
 * @throws ConfigError when the database cannot be used, and is not just away, or Redis cannot be used without it.
 */
export async function setUpDatabase(context: StartContext): Promise<{ close(): Promise<void> }> {
  const { config, tried, watch, secrets, log } = context;
  const { db, absence, reach } = tried;
  const claims: Claims = {};
  let arrival: DatabaseArrival | undefined;
  const done = {
    close: async () => {
      await arrival?.close();
      for (const claim of [claims.database, claims.signing]) claim?.close();
    },
  };
  const away = absence ?? (await orAbsence(config, () => setUp(context, claims)));
  if (away === undefined) return done;
  if (!(await watch.trust())) throw away;
  log.warn({ reason: away.message }, 'starting without the database; what needs it gets 503 until it is there');
  if (config.secret !== undefined) await secrets.read(db, config);
  arrival = new DatabaseArrival({ reach, setUp: () => setUp(context, claims), log });
  return done;
}

/** Why the database is away after all, once it was reached: a Postgres that takes no writes refuses only what is missing. */
async function orAbsence(config: Config, work: () => Promise<void>): Promise<ConfigError | undefined> {
  try {
    await work();
    return undefined;
  } catch (error) {
    if (config.databaseUrl === undefined || !isDatabaseUnreachable(error)) throw error;
    return new ConfigError(startFailure(error), { cause: error });
  }
}

/** Each step may be repeated. The first key and Redis come before all that may admit anything. */
async function setUp(
  { config, tried: { db }, redis, watch, secrets, log }: StartContext,
  claims: Claims,
): Promise<void> {
  // Before anything is written, and before Redis is raised to what may be another ledger.
  claims.database ??= await claimDatabase(redis, db, log);
  if (config.apiKey !== undefined) await setUpFirstKey(db, config.apiKey, log);
  await watch.raise();
  await secrets.read(db, config);
  claims.signing ??= await claimSigning(redis, secrets, log);
  const operator = config.admin && (await ensureOperator(db, config.admin));
  if (operator === 'other_password') {
    log.warn('SLUICE_ADMIN_EMAIL is a user with another password, who therefore is not made an operator.');
  } else if (operator === 'taken_back') {
    log.info('SLUICE_ADMIN_EMAIL names an operator who has been deleted or demoted since, and stays so.');
  }
}

/** Whoever replaces a key that has leaked by another in the settings must know that this does not revoke it. */
async function setUpFirstKey(db: Database, text: string, log: Logger): Promise<void> {
  const outcome = await ensureApiKey(db, text);
  if (outcome === 'revoked') log.warn('SLUICE_BOOTSTRAP_KEY names a key that has been revoked; it stays so.');
  if (outcome !== 'created') return;
  const keys = await otherBootstrapKeys(db, text);
  if (keys.length === 0) return;
  log.warn({ keys }, 'SLUICE_BOOTSTRAP_KEY names a new key; those it named before stay valid until revoked');
}
