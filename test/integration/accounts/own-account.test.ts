import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { Insertable } from 'kysely';
import { readingOperations } from '../../../api/reference/reading-operations.ts';
import type { JobsTable } from '../../../shared/database/tables.ts';
import { AdminKeys, type KeyAnswer } from '../../support/admin-keys.ts';
import { errorDetails } from '../../support/error-answers.ts';
import { eventually } from '../../support/eventually.ts';
import { loadProduct } from '../../support/gateway.ts';
import { JobRecords, jobIdOf } from '../../support/job-records.ts';
import { makeApiKey } from '../../support/make-api-key.ts';

const { newJobId } = await loadProduct<typeof import('../../../shared/ids.ts')>('shared/ids');
const { addToUsageHours } =
  await loadProduct<typeof import('../../../api/ledger/usage/usage-hours.ts')>('api/ledger/usage/usage-hours');

const [hour, day] = [3_600_000, 86_400_000];
const today = Date.now() - (Date.now() % day);
const chat = { model: 'sandbox-chat', messages: [{ role: 'user', content: 'Hello' }] };

interface Tenant {
  readonly account: string;
  readonly key: KeyAnswer;
}

let jobs: JobRecords;
let admin: AdminKeys;

before(async () => {
  jobs = await JobRecords.start();
  admin = await AdminKeys.open(jobs.gateway);
});
after(() => jobs?.stop());

/** A new account with a key. */
async function tenant(name: string, fields: object = {}, isUnlimited = true): Promise<Tenant> {
  const { id } = await admin.answer(201, 'POST', '/accounts', { name, is_unlimited: isUnlimited });
  return { account: id, key: await admin.create({ name: `${name}'s key`, ...fields }, id) };
}

/** Puts ended jobs of a tenant into the ledger; returns their ids, the oldest first. */
async function addJobs({ account, key }: Tenant, facts: readonly Partial<Insertable<JobsTable>>[]): Promise<string[]> {
  const rows = facts.map((fact, index) => {
    const createdAt = fact.created_at ?? today - day + index;
    return {
      ...{ id: newJobId(createdAt), account_id: account, api_key_id: key.id, endpoint: 'chat', capability: 'chat' },
      ...{ model: 'model', vendor: 'sandbox', stream: 1, created_at: createdAt, attempts: 1, retention_ms: 0 },
      ...{ began_at: createdAt + 1000, first_at: createdAt + 1020, ended_at: createdAt + 2000 },
      ...{ outcome: 'completed' as const, error_code: null, input_tokens: 3, output_tokens: 4, usage: null },
      ...{ metadata: null, cost: 1_500_000, vendor_cost: null, served_model: null, cached_tokens: null, saved: null },
      ...fact,
    };
  });
  await jobs.db.insertInto('jobs').values(rows).execute();
  await addToUsageHours(jobs.db, rows);
  return rows.map(({ id }) => `job_${id}`);
}

/** Asks by a tenant's key. */
// biome-ignore lint/suspicious/noExplicitAny: tests read whatever the route returns.
async function ask({ key }: Tenant, path: string, status = 200): Promise<any> {
  const response = await jobs.gateway.fetch(path, { headers: { authorization: `Bearer ${key.key}` } });
  const text = await response.text();
  assert.equal(response.status, status, `${path}: ${text}`);
  return JSON.parse(text);
}

async function assertRefused(who: Tenant, path: string, param: string): Promise<void> {
  const error = errorDetails(await ask(who, path, 400));
  assert.deepEqual([error.code, error.param], ['invalid_request_error', param], path);
}

const idsOf = (list: { data: { id: string }[] }) => list.data.map(({ id }) => id);

test('GET /v1/jobs and /v1/usage take the query parameters that the reference has, and no others', async () => {
  const ann = await tenant('ann');
  for (const path of ['/v1/jobs', '/v1/usage']) {
    const { message } = errorDetails(await ask(ann, `${path}?modle=one`, 400));
    const taken = /: this path takes (.*)\.$/.exec(message)?.[1]?.split(', ').sort();
    assert.deepEqual(taken, Object.keys(readingOperations[`GET ${path}`]?.query ?? {}).sort());
  }
});

describe('GET /v1/jobs', () => {
  test('GET /v1/jobs lists the jobs of the account, newest first, in the shape of OpenAI lists', async () => {
    const ann = await tenant('ann');
    const ids = await addJobs(ann, [{}, { outcome: 'failed', error_code: 'server_error' }, {}]);
    const list = await ask(ann, '/v1/jobs');
    assert.deepEqual(idsOf(list), [...ids].reverse());
    assert.deepEqual([list.object, list.first_id, list.last_id, list.has_more], ['list', ids[2], ids[0], false]);
    const [newest, failed] = list.data;
    const created = Math.floor((today - day + 2) / 1000);
    assert.deepEqual(
      [newest.object, newest.status, newest.created_at, newest.started_at, newest.finished_at, newest.cost],
      ['job', 'completed', created, created + 1, created + 2, 0.0015],
    );
    assert.deepEqual([newest.input_tokens, newest.output_tokens, newest.error], [3, 4, null]);
    assert.equal(newest.urls.self, `${jobs.gateway.url}/v1/jobs/${newest.id}`);
    assert.deepEqual([failed.status, failed.error.code], ['failed', 'server_error']);
  });

  test('GET /v1/jobs pages in both orders without gaps while new jobs arrive', async () => {
    const ann = await tenant('ann');
    const ids = await addJobs(
      ann,
      Array.from({ length: 7 }, () => ({})),
    );
    for (const order of ['asc', 'desc']) {
      const seen: string[] = [];
      for (let after = ''; ; ) {
        const page = await ask(ann, `/v1/jobs?limit=3&order=${order}${after && `&after=${after}`}`);
        seen.push(...idsOf(page));
        assert.deepEqual([page.first_id, page.last_id], [page.data[0]?.id, page.data.at(-1)?.id]);
        if (!page.has_more) break;
        after = page.last_id;
        if (order === 'desc') await addJobs(ann, [{ created_at: Date.now() }]);
      }
      assert.deepEqual(seen, order === 'asc' ? ids : [...ids].reverse());
    }
  });

  test('GET /v1/jobs filters by status and model', async () => {
    const ann = await tenant('ann');
    const [completed, failed, cancelled] = await addJobs(ann, [
      { model: 'one' },
      { model: 'two', outcome: 'failed', error_code: 'timeout' },
      { model: 'two', outcome: 'cancelled', error_code: 'cancelled' },
    ]);
    assert.deepEqual(idsOf(await ask(ann, '/v1/jobs?status=completed')), [completed]);
    assert.deepEqual(idsOf(await ask(ann, '/v1/jobs?status=cancelled')), [cancelled]);
    assert.deepEqual(idsOf(await ask(ann, '/v1/jobs?model=two')), [cancelled, failed]);
    assert.deepEqual(idsOf(await ask(ann, '/v1/jobs?model=two&status=failed')), [failed]);
    assert.deepEqual(await ask(ann, '/v1/jobs?model=none'), {
      ...{ object: 'list', data: [], first_id: null, last_id: null, has_more: false },
    });
  });

  test('GET /v1/jobs shows an executed job, and an asynchronous one before it ends', async () => {
    const ann = await tenant('ann');
    const headers = { authorization: `Bearer ${ann.key.key}` };
    const response = await jobs.post({ ...chat, metadata: { team: 'blue' } }, headers);
    assert.equal(response.status, 200, await response.text());
    const id = `job_${jobIdOf(response)}`;
    const endless = { ...chat, sandbox: { tokens_per_second: 1 }, max_tokens: 100_000 };
    const running = `job_${await jobs.postLater(endless, headers)}`;
    await eventually(async () => assert.deepEqual(idsOf(await ask(ann, '/v1/jobs')), [running, id]));
    const list = await ask(ann, '/v1/jobs');
    assert.ok(['queued', 'in_progress'].includes(list.data[0].status), list.data[0].status);
    assert.deepEqual(idsOf(await ask(ann, '/v1/jobs?status=unfinished')), [running]);
    const { result: _, queue_position: __, expected_wait_seconds: ___, ...job } = await ask(ann, `/v1/jobs/${id}`);
    const { input_tokens: input, output_tokens: output, metadata, ...listed } = list.data[1];
    assert.deepEqual(listed, job);
    assert.deepEqual([input > 0, output > 0, metadata], [true, true, { team: 'blue' }]);
    await jobs.gateway.fetch(`/v1/jobs/${running}`, { method: 'DELETE', headers });
  });

  test('GET /v1/jobs shows the error of a failed job as GET /v1/jobs/{id} does', async () => {
    const ann = await tenant('ann');
    const headers = { authorization: `Bearer ${ann.key.key}` };
    const fault = { sandbox: { fault: { kind: 'error', status: 400 } } };
    const id = await jobs.postLater({ ...chat, ...fault }, headers);
    await jobs.ended(id);
    const [listed] = (await ask(ann, '/v1/jobs?status=failed')).data;
    const { error } = await ask(ann, `/v1/jobs/${id}`);
    assert.equal(listed.id, `job_${id}`);
    assert.ok(error.message.length > 0);
    assert.deepEqual(listed.error, error);
  });

  test('GET /v1/jobs shows nothing of another account, even by its ids', async () => {
    const [ann, bob] = [await tenant('ann'), await tenant('bob')];
    const [first] = await addJobs(ann, [{}, {}]);
    const [own] = await addJobs(bob, [{ created_at: today }]);
    assert.deepEqual(idsOf(await ask(bob, '/v1/jobs')), [own]);
    assert.deepEqual(idsOf(await ask(bob, `/v1/jobs?order=asc&after=${first}`)), [own]);
    await assertRefused(bob, `/v1/jobs?account=${ann.account}`, 'account');
  });

  test('GET /v1/jobs returns 400 naming the invalid parameter', async () => {
    const ann = await tenant('ann');
    await assertRefused(ann, '/v1/jobs?modle=one', 'modle');
    await assertRefused(ann, '/v1/jobs?limit=0', 'limit');
    await assertRefused(ann, '/v1/jobs?limit=101', 'limit');
    await assertRefused(ann, '/v1/jobs?order=up', 'order');
    await assertRefused(ann, '/v1/jobs?after=nobody', 'after');
    await assertRefused(ann, '/v1/jobs?status=done', 'status');
    await assertRefused(ann, `/v1/jobs?model=${'x'.repeat(2000)}`, 'model');
  });
});

describe('GET /v1/usage', () => {
  const usage = (who: Tenant, query: string) => ask(who, `/v1/usage?${query}`);
  const seconds = (ms: number): number => ms / 1000;

  test('GET /v1/usage sums requests, tokens and cost by whole day and model', async () => {
    const ann = await tenant('ann');
    const begin = today - 3 * day;
    await addJobs(ann, [
      { created_at: begin + 5 * hour, model: 'one' },
      { created_at: begin + 9 * hour, model: 'one' },
      { created_at: begin + 9 * hour, model: 'two', outcome: 'failed', error_code: 'timeout', cost: 0 },
      { created_at: begin + 2 * day - 1, model: 'two' },
      { created_at: begin + 2 * day, model: 'outside' },
    ]);
    const { object, data } = await usage(
      ann,
      `start_time=${seconds(begin + hour)}&end_time=${seconds(begin + day) + 1}`,
    );
    const row = (model: string, requests: number, cost: number) => ({
      ...{ object: 'usage.result', model, requests, input_tokens: 3 * requests, output_tokens: 4 * requests, cost },
      ...{ cached_tokens: 0, saved: 0, cache_hits: 0 },
    });
    assert.equal(object, 'list');
    assert.deepEqual(data, [
      {
        ...{ object: 'bucket', start_time: seconds(begin), end_time: seconds(begin + day) },
        results: [row('one', 2, 0.003), row('two', 1, 0)],
      },
      {
        ...{ object: 'bucket', start_time: seconds(begin + day), end_time: seconds(begin + 2 * day) },
        results: [row('two', 1, 0.0015)],
      },
    ]);
  });

  test('GET /v1/usage sums by hour including empty hours, and covers the last days by default', async () => {
    const ann = await tenant('ann');
    const begin = today - day;
    await addJobs(ann, [{ created_at: begin + 2 * hour + 1 }]);
    const hours = await usage(
      ann,
      `bucket_width=1h&start_time=${seconds(begin)}&end_time=${seconds(begin + 3 * hour)}`,
    );
    assert.deepEqual(
      hours.data.map((bucket: { results: { requests: number }[] }) => bucket.results.map(({ requests }) => requests)),
      [[], [], [1]],
    );
    const days = await usage(ann, '');
    assert.equal(days.data.length, 7);
    assert.equal(days.data.flatMap(({ results }: { results: unknown[] }) => results).length, 1);
    assert.equal((await usage(ann, 'bucket_width=1h')).data.length, 24);
  });

  test('GET /v1/usage covers all keys of the account of the key, and no other account', async () => {
    const [ann, bob] = [await tenant('ann'), await tenant('bob')];
    const other = { account: ann.account, key: await admin.create({ name: 'other' }, ann.account) };
    await addJobs(ann, [{}, {}]);
    await addJobs(other, [{}]);
    const requests = async (who: Tenant): Promise<number[]> =>
      (await usage(who, '')).data.flatMap(({ results }: { results: { requests: number }[] }) =>
        results.map((row) => row.requests),
      );
    assert.deepEqual([await requests(ann), await requests(other), await requests(bob)], [[3], [3], []]);
    await assertRefused(bob, `/v1/usage?account=${ann.account}`, 'account');
  });

  test('GET /v1/usage returns 400 for a span that is too long, empty, reversed or invalid', async () => {
    const ann = await tenant('ann');
    const end = seconds(today);
    for (const [width, most] of [
      ['1h', 168 * 3600],
      ['1d', 92 * 86_400],
    ] as const) {
      const span = (length: number) => `bucket_width=${width}&start_time=${end - length}&end_time=${end}`;
      await usage(ann, span(most));
      await assertRefused(ann, `/v1/usage?${span(most + 1)}`, 'start_time');
      await assertRefused(ann, `/v1/usage?${span(0)}`, 'start_time');
    }
    await assertRefused(ann, `/v1/usage?start_time=${end}&end_time=${end - 1}`, 'start_time');
    // Of OpenAI's usage API: a sum of all models and keys in place of some would be taken for theirs.
    for (const param of ['models', 'api_key_ids', 'group_by', 'limit']) {
      await assertRefused(ann, `/v1/usage?${param}=one`, param);
    }
    await assertRefused(ann, '/v1/usage?start_time=yesterday', 'start_time');
    await assertRefused(ann, '/v1/usage?end_time=253402300800', 'end_time');
    await assertRefused(ann, '/v1/usage?end_time=-1', 'end_time');
    await assertRefused(ann, '/v1/usage?bucket_width=1m', 'bucket_width');
  });
});

describe('GET /v1/key', () => {
  test('GET /v1/key shows the id, limits and balance of the calling key, and never the key itself', async () => {
    const limits = { rpm: 9, tpm: 900, concurrency: 3, budget: { amount: 5, period: 'never' } };
    const expiresAt = today + 30 * day;
    const ann = await tenant('ann', { ...limits, models: ['sandbox-chat'], expires_at: expiresAt }, false);
    await admin.answer(201, 'POST', `/accounts/${ann.account}/credits`, { amount: 2.5 });
    const { created_at: createdAt, ...key } = await ask(ann, '/v1/key');
    assert.deepEqual(key, {
      ...{ id: ann.key.id, object: 'key', name: "ann's key", expires_at: expiresAt / 1000 },
      ...{ capabilities: null, models: ['sandbox-chat'] },
      limits: { ...limits, models: null, budget: { ...limits.budget, spent: 0 } },
      account: { id: ann.account, name: 'ann', balance: 2.5 },
    });
    assert.ok(Math.abs(createdAt - Date.now() / 1000) < 3600);
    const text = JSON.stringify(await ask(ann, '/v1/key'));
    assert.ok(!text.includes((ann.key.key as string).slice('sk-sluice-'.length, 'sk-sluice-'.length + 4)), text);
    // What a request costs is spent of both.
    const response = await jobs.post({ ...chat, max_tokens: 20 }, { authorization: `Bearer ${ann.key.key}` });
    assert.equal(response.status, 200, await response.text());
    const { cost } = await jobs.ended(jobIdOf(response));
    const dollars = (cost as number) / 1e9;
    assert.ok(dollars > 0);
    const spent = await ask(ann, '/v1/key');
    assert.equal(spent.limits.budget.spent, dollars);
    assert.ok(Math.abs(spent.account.balance - (2.5 - dollars)) < 1e-12);
  });

  test('GET /v1/key tells what was spent of a budget that admission has not loaded, as after a change and a rotation', async () => {
    const ann = await tenant('ann', { budget: { amount: 5, period: 'never' } });
    await addJobs(ann, [{}, { cost: 2_000_000_000 }]);
    const spent = 2.0015;
    assert.equal((await ask(ann, '/v1/key')).limits.budget.spent, spent);
    const changed = await admin.change(ann.key.id, { budget: { amount: 9, period: 'never' } });
    assert.deepEqual(changed.budget, { amount: 9, period: 'never', spent });
    assert.equal((await admin.rotate(ann.key.id)).budget.spent, spent);
    const { data } = await admin.answer(200, 'GET', `/accounts/${ann.account}/keys`);
    assert.deepEqual(
      data.map(({ budget }: KeyAnswer) => budget.spent),
      [spent, spent],
    );
  });

  test('GET /v1/key has null for every limit of an unlimited account', async () => {
    const ann = await tenant('ann');
    const { limits, account, models } = await ask(ann, '/v1/key');
    assert.deepEqual([account.balance, models], [null, null]);
    assert.deepEqual(limits, { rpm: null, tpm: null, concurrency: null, models: null, budget: null });
  });

  test('GET /v1/key returns 403 to an operator key', async () => {
    const key = await makeApiKey(jobs.gateway, { kind: 'operator' });
    const { status } = await jobs.gateway.fetch('/v1/key', { headers: { authorization: `Bearer ${key}` } });
    assert.equal(status, 403);
  });
});
