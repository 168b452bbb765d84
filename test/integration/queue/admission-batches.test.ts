import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { AdmitCall, AdmitReply } from '../../../api/admission/admit.ts';
import type { Capability } from '../../../shared/capabilities/capability.ts';
import type { JobIdentity } from '../../../shared/jobs/job-state.ts';
import { admission, knowCaller, unlimitedCaller } from '../../support/admission.ts';
import { JobFixture } from '../../support/faults/job-fixture.ts';
import { loadProduct } from '../../support/gateway.ts';

const { accountKeys, jobKeys, queueKeysPrefix } =
  await loadProduct<typeof import('../../../shared/redis/keys.ts')>('shared/redis/keys');
const { admit } = await loadProduct<typeof import('../../../api/admission/admit.ts')>('api/admission/admit');
const { CapabilityQueue } = await loadProduct<typeof import('../../../shared/queue/queue.ts')>('shared/queue/queue');
const money = await loadProduct<typeof import('../../../shared/accounts/account-money.ts')>(
  'shared/accounts/account-money',
);

let jobs: JobFixture;
let made = 0;

before(async () => {
  jobs = await JobFixture.start();
});
after(() => jobs?.stop());

const costs = (fixed: number) => ({ fixed, outputPrice: 0, outputTokens: 0, isGiven: true });

/** Asks for some jobs of one new account in the same moment, which makes one call of them; counts the calls, too. */
async function askTogether(
  changes: readonly Partial<AdmitCall>[],
  { credit = '' as number | '', caller = {} as Partial<AdmitCall['caller']>, capability = 'chat' as Capability } = {},
) {
  const account = `together${++made}`;
  await knowCaller(jobs.redis, { account, credit });
  await admit(jobs.redis, { ...admission(jobs.identity({ account })), shedding: 'shed' });
  const calls = async () => Number(/cmdstat_evalsha:calls=(\d+)/.exec(await jobs.redis.info('commandstats'))?.[1] ?? 0);
  const before = await calls();
  const asked: JobIdentity[] = [];
  const replies = await Promise.all(
    changes.map((change) => {
      const job = { ...jobs.identity({ account, capability }), ...change.job };
      asked.push(job);
      const by = { ...unlimitedCaller, account, ...caller };
      return admit(jobs.redis, { ...admission(job), reader: 'api', caller: by, ...change, job });
    }),
  );
  assert.equal((await calls()) - before, 1, 'it was one call');
  const money = () => jobs.redis.hgetall(accountKeys.account(account));
  return { account, asked, replies, money };
}

const verdicts = (replies: readonly AdmitReply[]) => replies.map(({ verdict }) => verdict);
const times = <T>(count: number, one: T): T[] => Array.from({ length: count }, () => one);

describe('admissions in one batch', () => {
  test('batched admissions each hold their own amount, and together no more than the balance', async () => {
    const { replies, money } = await askTogether(times(5, { hold: costs(30) }), { credit: 100 });
    assert.deepEqual(verdicts(replies), ['admitted', 'admitted', 'admitted', 'balance', 'balance']);
    assert.equal(replies[3]?.detail, '30 10 90');
    assert.equal((await money()).held, '90');
  });

  test('a refused admission takes nothing from those behind it in the batch', async () => {
    const holds = [costs(30), costs(90), costs(70), costs(1)].map((hold) => ({ hold }));
    const { replies, money, account, asked } = await askTogether(holds, { credit: 100 });
    assert.deepEqual(verdicts(replies), ['admitted', 'balance', 'admitted', 'balance']);
    const { held, 'n:chat': unfinished } = await money();
    assert.deepEqual([held, unfinished], ['100', '2']);
    const states = await Promise.all(asked.map(({ id }) => jobs.redis.exists(jobKeys.state(id))));
    assert.deepEqual(states, [1, 0, 1, 0]);
    const holdsLeft = await jobs.redis.zrange(accountKeys.holds(account), '0', '-1');
    assert.equal(holdsLeft.filter((member) => member.split(' ')[1] === account).length, 2);
  });

  test('batched admissions stay within the budget, concurrency and rate limits of their key', async () => {
    const budget = { amount: 100, period: 'never' } as const;
    const apiKeyId = 'budgeted';
    const account = `together${made + 1}`;
    await jobs.redis.set(accountKeys.keyActive(account, apiKeyId), '1');
    await money.loadBudget(jobs.redis, { account, apiKeyId, period: money.budgetPeriodAt('never', 0).name }, 0);
    const job = { apiKeyId } as JobIdentity;
    const spending = await askTogether(times(4, { job, hold: costs(40) }), { caller: { apiKeyId, budget } });
    assert.deepEqual(verdicts(spending.replies), ['admitted', 'admitted', 'budget', 'budget']);

    const crowding = await askTogether(times(4, { concurrency: 3 }));
    assert.deepEqual(verdicts(crowding.replies), ['admitted', 'admitted', 'admitted', 'concurrency']);
    assert.deepEqual(
      crowding.replies.map(({ running }) => running),
      [1, 2, 3, 3],
    );

    const rushing = await askTogether(times(4, { tokens: 10 }), { caller: { rpm: 3, tpm: 25 } });
    assert.deepEqual(verdicts(rushing.replies), ['admitted', 'admitted', 'rate', 'rate']);
    assert.deepEqual(
      rushing.replies.map(({ left }) => left.split(' ').filter((_, index) => index % 2 === 0)).slice(0, 2),
      [
        ['2', '15', ''],
        ['1', '5', ''],
      ],
    );
  });

  test('batched admissions with one idempotency key make one job', async () => {
    const job = { idempotency: 'hash' } as JobIdentity;
    const { replies, asked } = await askTogether([{ job }, { job }, { job, bodyHash: 'another' }]);
    assert.deepEqual(verdicts(replies), ['admitted', 'replay', 'reused']);
    assert.equal(replies[1]?.detail, asked[0]?.id);
  });

  test('batched admissions get priorities when the queue does not flow, and are not queued', async () => {
    const queued = { request: '{}' };
    const { replies } = await askTogether(times(3, { flows: false, queued }));
    assert.deepEqual(
      replies.map(({ hasPriority }) => hasPriority),
      [true, true, true],
    );
    assert.ok(!replies.some(({ isQueued }) => isQueued), 'those that have a priority do not go before the others');
    assert.equal(await jobs.redis.exists(`${queueKeysPrefix('chat')}wait`), 0);
  });

  test('batched admissions queue the admitted jobs in order, in the layout of BullMQ', async () => {
    const capability = 'embedding';
    const queue = new CapabilityQueue(capability, jobs.redis);
    const hold = { fixed: 1, outputPrice: 1000, outputTokens: 50, isGiven: false };
    const queued = { request: '{"text":"ä"}', excludedRoutes: ['one'] };
    const calls = [{ hold, queued }, { hold: costs(99), queued }, { hold, queued }, { hold }];
    const { asked, replies } = await askTogether(calls, { credit: 90, capability });
    assert.deepEqual(verdicts(replies), ['admitted', 'balance', 'admitted', 'balance']);
    assert.deepEqual(
      replies.map(({ isQueued }) => isQueued),
      [true, false, true, false],
    );
    const [first, , third] = asked.map(({ id }) => id);
    const ids = await jobs.redis.lrange(`${queueKeysPrefix(capability)}wait`, 0, -1);
    assert.deepEqual(ids.reverse(), [`job_${first}`, `job_${third}`]);
    assert.deepEqual(await queue.find(first as string), { ...asked[0], ...queued, maxCost: 51 });
    assert.deepEqual(await queue.find(third as string), { ...asked[2], ...queued, outputLimit: 38, maxCost: 39 });
    // As BullMQ itself would have put it there.
    const own = await (await queue.bull()).getJob(`job_${first}`);
    await queue.enqueue(jobs.identity({ capability, id: 'f'.repeat(32) }));
    const other = await (await queue.bull()).getJob(`job_${'f'.repeat(32)}`);
    const shape = (job: typeof own) => ({ ...job?.opts, jobId: '', name: job?.name, priority: job?.priority });
    assert.deepEqual(shape(own), shape(other));
    const state = await jobs.redis.hget(`${queueKeysPrefix(capability)}job_${first}`, 'state');
    assert.equal(state, jobKeys.state(first as string), 'who takes it can begin it in the same step');
    assert.equal(await jobs.redis.zcard(`${queueKeysPrefix(capability)}marker`), 1);
    await queue.close();
  });

  test('a repeated batch of admissions changes nothing and queues nothing', async () => {
    const { account, asked, money } = await askTogether(times(2, { hold: costs(30), queued: { request: '{}' } }), {
      credit: 100,
    });
    const caller = { ...unlimitedCaller, account };
    const again = await Promise.all(
      asked.map((job) =>
        admit(jobs.redis, {
          ...{ ...admission(job), reader: 'api', caller, hold: costs(30), queued: { request: '{}' } },
        }),
      ),
    );
    assert.deepEqual(
      again.map(({ verdict, isQueued, running }) => [verdict, isQueued, running]),
      times(2, ['admitted', false, 2]),
    );
    assert.equal((await money()).held, '60');
  });
});
