import { setTimeout as delay } from 'node:timers/promises';
import type { Database } from '../database/database.ts';
import { saturatedSum } from '../database/saturated-sum.ts';
import { accountKeys } from '../redis/keys.ts';
import type { RedisClient } from '../redis/redis.ts';
import { withTimeout } from '../runtime/with-timeout.ts';
import {
  type AccountMoney,
  maxPriorityOf,
  setAccountCredit,
  setAccountMaxPriority,
  setAccountQueueByKey,
  setAccountQueueWeight,
  setAccountSuspended,
} from './account-money.ts';
import { readMoneyOfAccount } from './accounts.ts';

/** How often a write to Redis is compared with the database, in case the account changes concurrently. */
const maxPushes = 10;
const syncBatch = 500;
/** How long a change waits for Redis, and the interval at which Redis is told again, in ms. */
const tellMs = 2000;
const tellAgainMs = 500;

/**
 * Copies an account's state from the database to admission. Two concurrent changes may reach Redis in the opposite order, so it
 * compares again until Redis matches the database.
 */
export async function tellRedis(db: Database, redis: RedisClient, id: string): Promise<void> {
  let money = await readMoneyOfAccount(db, id);
  for (let pushes = 0; pushes < maxPushes; pushes++) {
    await setAccountCredit(redis, id, money.credit);
    await setAccountSuspended(redis, id, money.isSuspended);
    await setAccountQueueWeight(redis, id, money.queueWeight);
    await setAccountQueueByKey(redis, id, money.queueByKey);
    await setAccountMaxPriority(redis, id, money.maxPriority);
    const now = await readMoneyOfAccount(db, id);
    if (isSameState(now, money)) return;
    money = now;
  }
  throw new Error('the account is being changed all the time');
}

/**
 * Same as `tellRedis`; a Redis that refuses the change, or is silent, delays the caller only briefly. It is told again in the
 * background until it knows; what a process leaves undone is done by the next start (`syncAccounts`). Returns whether it knows.
 */
export async function tellRedisEventually(db: Database, redis: RedisClient, id: string): Promise<boolean> {
  const telling = async (): Promise<boolean> => {
    while (redis.status !== 'end') {
      const isTold = await tellRedis(db, redis, id).then(
        () => true,
        () => false,
      );
      if (isTold) return true;
      await delay(tellAgainMs, undefined, { ref: false });
    }
    return false;
  };
  return (await withTimeout(telling(), tellMs)) ?? false;
}

/**
 * Updates every account that admission knows. Call it before an api process admits anything, and when Redis comes back as
 * another instance: a Redis that was down during a change, or was restored from an older file, still has the old state. Redis
 * loads unknown accounts on demand, so only known ones are read.
 * @param onKnown receives those accounts, some hundreds at a time
 */
export async function syncAccounts(
  db: Database,
  redis: RedisClient,
  onKnown: (accounts: readonly string[]) => Promise<void> = async () => undefined,
): Promise<void> {
  for (let after = ''; ; ) {
    const page = db.selectFrom('accounts').select('id').where('id', '>', after).orderBy('id').limit(syncBatch);
    const ids = (await page.execute()).map(({ id }) => id);
    const states = await readAdmissionStates(redis, ids);
    const known = [...states.keys()];
    if (known.length > 0) {
      const changed = (await readCredits(db, known)).filter((account) => {
        return !isSameState(account, states.get(account.id) as AdmissionState);
      });
      await Promise.all(changed.map(({ id }) => tellRedis(db, redis, id)));
      await onKnown(known);
    }
    const last = ids.at(-1);
    if (last === undefined || ids.length < syncBatch) return;
    after = last;
  }
}

/** An account's state in admission. */
interface AdmissionState extends Omit<AccountMoney, 'charged' | 'maxPriority'> {
  /** Undefined: not known, as a process of the release before has loaded the account. */
  readonly maxPriority: AccountMoney['maxPriority'] | undefined;
}

function isSameState(one: AdmissionState, other: AdmissionState): boolean {
  const { credit, isSuspended, queueWeight, queueByKey, maxPriority } = one;
  return (
    credit === other.credit &&
    isSuspended === other.isSuspended &&
    queueWeight === other.queueWeight &&
    queueByKey === other.queueByKey &&
    maxPriority === other.maxPriority
  );
}

/** The state of those accounts that admission knows. */
async function readAdmissionStates(redis: RedisClient, ids: readonly string[]): Promise<Map<string, AdmissionState>> {
  const read = await Promise.all(
    ids.map((id) => redis.hmget(accountKeys.account(id), 'credit', 'suspended', 'weight', 'by_key', 'priority')),
  );
  return new Map(
    read.flatMap(([credit, suspended, weight, byKey, priority], index) => {
      if (credit === null || credit === undefined) return [];
      const state = {
        credit: credit === '' ? undefined : Number(credit),
        isSuspended: suspended === '1',
        queueWeight: Number(weight ?? 1),
        queueByKey: byKey === '1',
        maxPriority: maxPriorityOf(priority),
      };
      return [[ids[index] as string, state] as const];
    }),
  );
}

/** The same state from the database. Leaves out the charges, which take longest to read. */
async function readCredits(
  db: Database,
  ids: readonly string[],
): Promise<(AdmissionState & { readonly id: string })[]> {
  const rows = await db
    .selectFrom('accounts')
    .leftJoin('credits', 'credits.account_id', 'accounts.id')
    .select(['accounts.id', ...admissionColumns])
    .select(saturatedSum(db, 'credits.amount').as('credit'))
    .where('accounts.id', 'in', ids)
    .groupBy(['accounts.id', ...admissionColumns])
    .execute();
  return rows.map((row) => ({
    id: row.id,
    isSuspended: row.suspended_at !== null,
    credit: row.is_unlimited === 1 ? undefined : row.credit,
    queueWeight: row.queue_weight,
    queueByKey: row.queue_by_key === 1,
    maxPriority: row.max_priority,
  }));
}

/** What admission knows of an account, but for its money. */
const admissionColumns = [
  'accounts.is_unlimited',
  'accounts.suspended_at',
  'accounts.queue_weight',
  'accounts.queue_by_key',
  'accounts.max_priority',
] as const;
