import assert from 'node:assert/strict';
import { once } from 'node:events';
import { get } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, describe, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import Koa from 'koa';
import type { Insertable } from 'kysely';
import type OpenAI from 'openai';
import type { Services } from '../../api/services.ts';
import type { State } from '../../api/state.ts';
import type { JobsTable } from '../../shared/database/tables.ts';
import { AdminKeys } from '../support/admin-keys.ts';
import { ConsoleClient } from '../support/console-client.ts';
import { stopDatabase } from '../support/database-faults.ts';
import { eventually } from '../support/eventually.ts';
import { loadProduct } from '../support/gateway.ts';
import { JobRecords } from '../support/job-records.ts';

const { newJobId } = await loadProduct<typeof import('../../shared/ids.ts')>('shared/ids');
const { addToUsageHours } =
  await loadProduct<typeof import('../../api/ledger/usage/usage-hours.ts')>('api/ledger/usage/usage-hours');

const { jobsCsv } = await loadProduct<typeof import('../../api/management/console/jobs-csv.ts')>(
  'api/management/console/jobs-csv',
);
const { Handover } = await loadProduct<typeof import('../../api/replies/client-connection.ts')>(
  'api/replies/client-connection',
);

const hour = 3_600_000;
const day = 24 * hour;
const morning = Date.now() - (Date.now() % day) - 2 * day;
const chat = { model: 'sandbox-chat', messages: [{ role: 'user', content: 'Hello' }] };

interface User {
  readonly client: ConsoleClient;
  readonly account: string;
  readonly keyId: string;
  readonly key: string;
}

let jobs: JobRecords;
let admin: AdminKeys;
let ann: User;
let bob: User;

before(async () => {
  jobs = await JobRecords.start();
  admin = await AdminKeys.open(jobs.gateway);
  ann = await signUp('ann');
  bob = await signUp('bob');
});
after(() => jobs?.stop());

async function signUp(name: string): Promise<User> {
  const client = new ConsoleClient(jobs.gateway.url);
  await client.signUp(`${name}@example.com`);
  const account = (await client.call('GET', '/console/api/session')).body.account.id as string;
  const response = await admin.ask('PATCH', `/accounts/${account}`, { is_unlimited: true });
  assert.equal(response.status, 200, await response.text());
  const { body } = await client.call('POST', '/console/api/keys', { name: `${name}'s key` });
  return { client, account, keyId: body.id, key: body.key };
}

/** Puts ended jobs of a user into the ledger; those later in the list are newer. */
async function addJobs(user: User, facts: readonly Partial<Insertable<JobsTable>>[]): Promise<string[]> {
  const rows = facts.map((fact, index) => {
    const createdAt = fact.created_at ?? morning + index;
    return {
      ...{ id: newJobId(createdAt), account_id: user.account, api_key_id: user.keyId, endpoint: 'chat.completions' },
      ...{ capability: 'chat', model: 'model', vendor: 'sandbox', stream: 1, created_at: createdAt, attempts: 1 },
      ...{
        began_at: createdAt + 1,
        first_at: createdAt + 20,
        ended_at: createdAt + 100,
        outcome: 'completed' as const,
      },
      ...{
        error_code: null,
        error_details: null,
        input_tokens: 3,
        output_tokens: 4,
        usage: null,
        retention_ms: 0,
        metadata: null,
      },
      ...{ cost: 1_500_000, vendor_cost: null, served_model: null, cached_tokens: null, saved: null },
      ...fact,
    };
  });
  await jobs.db.insertInto('jobs').values(rows).execute();
  await addToUsageHours(jobs.db, rows);
  return rows.map(({ id }) => `job_${id}`);
}

async function get200(user: User, path: string) {
  const { status, body } = await user.client.call('GET', `/console/api${path}`);
  assert.equal(status, 200, JSON.stringify(body));
  return body;
}

const idsOf = (list: { data: { id: string }[] }) => list.data.map(({ id }) => id);

/** Posts a chat by a user's key. */
function post(user: User, body: object, headers: Record<string, string> = {}): Promise<Response> {
  return jobs.post(body, { authorization: `Bearer ${user.key}`, ...headers });
}

/** A chat that takes until it is cancelled. */
const endless = { ...chat, sandbox: { tokens_per_second: 1 }, max_tokens: 100_000 };

describe('the list of jobs', () => {
  test('the list of jobs stays whole, page by page, while new jobs come', async () => {
    const user = await signUp('pages');
    const ids = await addJobs(
      user,
      Array.from({ length: 25 }, () => ({})),
    );
    const seen: string[] = [];
    for (let after = ''; ; ) {
      const page = await get200(user, `/jobs?limit=10${after && `&after=${after}`}`);
      seen.push(...idsOf(page));
      assert.equal(page.has_more, page.next !== null);
      if (!page.has_more) break;
      after = page.next;
      await addJobs(user, [{ created_at: Date.now() }]);
    }
    assert.deepEqual(seen, [...ids].reverse());
  });

  test('the list of jobs shows all there is to know of a job, in dollars and milliseconds', async () => {
    const user = await signUp('facts');
    const usage = { prompt_tokens: 3, completion_tokens: 4, service_tier: 'priority' };
    const [id = ''] = await addJobs(user, [
      {
        ...{ outcome: 'failed', error_code: 'server_error', served_model: 'other', cost: 12_345 },
        ...{ usage: JSON.stringify(usage), metadata: '{"customer":"a"}', vendor: '', vendor_cost: 10_000 },
        error_details: JSON.stringify({ message: 'It broke.', param: 'voice', code: 'x', vendorStatus: 400 }),
      },
    ]);
    const { data } = await get200(user, '/jobs');
    assert.deepEqual(data, [
      {
        ...{ id, object: 'job', status: 'failed', account_id: user.account, endpoint: 'chat.completions' },
        ...{ capability: 'chat', model: 'model', served_model: 'other', vendor: null, stream: true, attempts: 1 },
        key: { id: user.keyId, name: "facts's key" },
        ...{ created_at: morning, began_at: morning + 1, first_at: morning + 20, ended_at: morning + 100 },
        ...{
          error_code: 'server_error',
          error_message: 'It broke.',
          error_param: 'voice',
          vendor_status: 400,
          input_tokens: 3,
          output_tokens: 4,
          cost: 0.000012345,
          vendor_cost: 0.00001,
          usage,
          service_tier: 'priority',
        },
        ...{ metadata: { customer: 'a' }, has_body: false },
      },
    ]);
    assert.deepEqual(await get200(user, `/jobs/${id}`), data[0]);
  });

  test('the list of jobs leaves out what its filters do', async () => {
    const user = await signUp('filters');
    const [first, second, third, fourth] = await addJobs(user, [
      {},
      { outcome: 'failed', model: 'a' },
      { outcome: 'cancelled', model: 'a', endpoint: 'responses' },
      {
        ...{ api_key_id: 'another', created_at: morning + hour, capability: 'image', vendor: 'openai' },
        metadata: '{"customer":"a:b","note":"x"}',
      },
    ]);
    const ids = async (query: string) => idsOf(await get200(user, `/jobs?${query}`));
    assert.deepEqual(await ids('status=failed'), [second]);
    assert.deepEqual(await ids('status=cancelled&model=a'), [third]);
    assert.deepEqual(await ids('status=failed&model=b'), []);
    assert.deepEqual(await ids('model=a'), [third, second]);
    assert.deepEqual(await ids('endpoint=responses'), [third]);
    assert.deepEqual(await ids('key=another'), [fourth]);
    assert.deepEqual(await ids('capability=image'), [fourth]);
    assert.deepEqual(await ids('capability=chat&vendor=sandbox'), [third, second, first]);
    assert.deepEqual(await ids('vendor=openai'), [fourth]);
    assert.deepEqual(await ids('tag=customer:a:b'), [fourth]);
    assert.deepEqual(await ids('tag=customer:a'), []);
    const asked = 'tag=note:x&vendor=openai&capability=image';
    const { cookie } = user.client;
    const file = await fetch(`${jobs.gateway.url}/console/api/jobs.csv?${asked}`, { headers: { cookie } });
    assert.match(await file.text(), new RegExp(`^id,.*\\r\\n${fourth},.*\\r\\n$`));
    assert.deepEqual(await ids('status=completed'), [fourth, first]);
    assert.deepEqual(await ids('status=unfinished'), []);
    assert.deepEqual(await ids(`from=${morning + 1}&to=${morning + hour}`), [third, second]);
    for (const [query, param] of [
      ['status=over', 'status'],
      ['from=yesterday', 'from'],
      ['limit=0', 'limit'],
      ['limit=101', 'limit'],
      ['after=x', 'after'],
      ['model=a&model=b', 'model'],
      ['tag=none', 'tag'],
    ]) {
      const { status, body } = await user.client.call('GET', `/console/api/jobs?${query}`);
      assert.deepEqual([status, body.error.param], [400, param]);
    }
  });

  test('the list of jobs shows no other account anything: its job is as unknown as one that never was', async () => {
    const [id = ''] = await addJobs(ann, [{}]);
    const never = `job_${newJobId()}`;
    for (const path of [`/jobs/${id}`, `/jobs/${id}/events`]) {
      const [theirs, none] = await Promise.all([
        bob.client.call('GET', `/console/api${path}`),
        bob.client.call('GET', `/console/api${path.replace(id, never)}`),
      ]);
      assert.deepEqual([theirs.status, theirs.body], [404, none.body]);
    }
    const [theirs, none] = await Promise.all([
      bob.client.call('DELETE', `/console/api/jobs/${id}`),
      bob.client.call('DELETE', `/console/api/jobs/${never}`),
    ]);
    assert.deepEqual([theirs.status, theirs.body], [404, none.body]);
    assert.ok(!idsOf(await get200(bob, '/jobs')).includes(id));
    assert.equal((await get200(bob, `/jobs?account=${ann.account}`)).data.length, 0);
    assert.equal((await get200(bob, `/usage?account=${ann.account}`)).total.requests, 0);
    for (const path of ['/jobs', '/jobs/live', '/usage', '/jobs.csv', `/jobs/${id}`]) {
      assert.equal((await new ConsoleClient(jobs.gateway.url).call('GET', `/console/api${path}`)).status, 401);
    }
    assert.equal((await bob.client.call('GET', '/admin/v1/jobs')).status, 403);
  });

  test('the list of jobs of operators is of all accounts, or of one', async () => {
    const [mine = ''] = await addJobs(ann, [{ model: 'for-operators' }]);
    const [theirs = ''] = await addJobs(bob, [{ model: 'for-operators', created_at: morning + 1 }]);
    const ids = async (query: string) => idsOf((await admin.answer(200, 'GET', `/jobs?${query}`)) as never);
    assert.deepEqual(await ids('model=for-operators'), [theirs, mine]);
    assert.deepEqual(await ids(`model=for-operators&account=${ann.account}`), [mine]);
    assert.equal((await admin.answer(200, 'GET', `/jobs/${mine}`)).account_id, ann.account);
    const usage = await admin.answer(200, 'GET', '/usage?group_by=account&model=for-operators');
    assert.deepEqual(usage.data.map(({ group }: { group: string }) => group).sort(), [ann.account, bob.account].sort());
    assert.equal(usage.total.requests, 2);
  });
});

describe('running jobs', () => {
  test('running jobs are listed while they run, can be followed, and are cancelled by their owner only', async () => {
    const answer = await post(ann, { ...endless, stream: true, metadata: { run: '1' } });
    const id = answer.headers.get('x-request-id') as string;
    assert.equal(answer.status, 200);
    const live = await eventually(async () => {
      const found = (await get200(ann, '/jobs/live')).data.find((job: { id: string }) => job.id === id);
      assert.equal(found?.status, 'in_progress');
      return found;
    });
    await eventually(async () => {
      const { first_at: at } = await get200(ann, `/jobs/${id}`);
      assert.ok(at >= live.created_at, 'when its answer began is known while it goes on');
    });
    assert.deepEqual([live.key.name, live.metadata, live.ended_at], ["ann's key", { run: '1' }, null]);
    assert.equal((await get200(ann, `/jobs/${id}`)).status, 'in_progress');
    assert.deepEqual((await get200(bob, '/jobs/live')).data, []);
    assert.equal((await bob.client.call('DELETE', `/console/api/jobs/${id}`)).status, 404);
    const followed = await fetch(`${jobs.gateway.url}/console/api/jobs/${id}/events`, {
      headers: { cookie: ann.client.cookie },
    });
    assert.match(followed.headers.get('content-type') ?? '', /event-stream/);
    const { status, body } = await ann.client.call('DELETE', `/console/api/jobs/${id}`);
    assert.deepEqual([status, body.status, body.id], [200, 'cancelled', id]);
    assert.match(await followed.text(), /cancelled/);
    await answer.text();
    const row = await jobs.ended(id.slice('job_'.length));
    assert.deepEqual([row.outcome, row.metadata], ['cancelled', '{"run":"1"}']);
    assert.ok(row.first_at !== null && row.first_at >= row.created_at && row.first_at <= (row.ended_at ?? 0));
    await eventually(async () => assert.deepEqual((await get200(ann, '/jobs/live')).data, []));
    const after = await ann.client.call('DELETE', `/console/api/jobs/${id}`);
    assert.equal(after.body.status, 'cancelled');
  });

  test('running jobs count in the usage once they have ended, by their tags, too', async () => {
    const user = await signUp('tags');
    const metadata = { customer: 'a:b', note: '"=1+1"' };
    const answers = await Promise.all([post(user, { ...chat, metadata }), post(user, { ...chat, stream: true })]);
    for (const answer of answers) assert.equal(answer.status, 200, await answer.text());
    await eventually(async () => assert.equal((await get200(user, '/usage')).total.requests, 2));
    const { data, total } = await get200(user, `/usage?group_by=model&tag=${encodeURIComponent('customer:a:b')}`);
    assert.deepEqual([data.length, data[0].label, total.requests], [1, 'sandbox-chat', 1]);
    assert.ok(total.input_tokens > 0 && total.output_tokens > 0 && total.average_ms > 0);
    const { data: byKey } = await get200(user, '/usage?group_by=key');
    assert.deepEqual([byKey[0].group, byKey[0].label, byKey[0].requests], [user.keyId, "tags's key", 2]);
  });
});

describe('usage', () => {
  test('a report of more than a thousand groups says that it leaves some out; its total and the file have all', async () => {
    const user = await signUp('many');
    const facts = Array.from({ length: 1001 }, (_, index) => ({ model: `model-${index}`, cost: 1_000_000 + index }));
    for (let start = 0; start < 1000; start += 200) await addJobs(user, facts.slice(start, start + 200));
    const read = () => get200(user, '/usage?group_by=model');
    const whole = await read();
    assert.deepEqual([whole.data.length, whole.has_more], [1000, false]);
    await addJobs(user, facts.slice(1000));
    const cut = await read();
    assert.deepEqual([cut.data.length, cut.has_more, cut.total.requests], [1000, true, 1001]);
    assert.deepEqual([cut.data[0].label, cut.data.at(-1).label], ['model-1000', 'model-1']);
    const headers = { cookie: user.client.cookie };
    const file = await fetch(`${jobs.gateway.url}/console/api/usage.csv?group_by=model`, { headers });
    assert.equal((await file.text()).trimEnd().split('\r\n').length, 1002);
    assert.equal((await get200(user, '/usage')).has_more, false);
  });

  test('usage is in dollars, in the days of a time zone', async () => {
    const user = await signUp('days');
    await addJobs(user, [
      { created_at: morning - 1, cost: 1, cached_tokens: 2, saved: 1_000_000 },
      { created_at: morning, outcome: 'failed', cost: null, input_tokens: null, first_at: null },
      { created_at: morning + 4 * hour, ended_at: morning + 4 * hour + 201 },
    ]);
    const query = `from=${morning - day}&to=${morning + day}`;
    const { data, total } = await get200(user, `/usage?${query}`);
    const date = (time: number) => new Date(time).toISOString().slice(0, 10);
    assert.deepEqual(data, [
      {
        ...{ group: morning - day, label: date(morning - day), requests: 1, failed: 0, cancelled: 0 },
        ...{ input_tokens: 3, output_tokens: 4, cost: 1e-9, average_ms: 100, average_first_ms: 20 },
        ...{ cached_tokens: 2, saved: 0.001, cache_hits: 0 },
      },
      {
        ...{ group: morning, label: date(morning), requests: 2, failed: 1, cancelled: 0 },
        ...{ input_tokens: 3, output_tokens: 8, cost: 0.0015, average_ms: 151, average_first_ms: 20 },
        ...{ cached_tokens: 0, saved: 0, cache_hits: 0 },
      },
    ]);
    assert.equal(total.requests, 3);
    const file = async (asked: string): Promise<string[]> => {
      const headers = { cookie: user.client.cookie };
      const answer = await fetch(`${jobs.gateway.url}/console/api/usage.csv?${query}${asked}`, { headers });
      assert.match(answer.headers.get('content-type') ?? '', /^text\/csv/);
      assert.match(answer.headers.get('content-disposition') ?? '', /filename="usage-by-(day|key)\.csv"/);
      return (await answer.text()).split('\r\n');
    };
    assert.deepEqual(await file(''), [
      'day,requests,failed,cancelled,input_tokens,output_tokens,average_ms,average_first_ms,cost_dollars,cached_tokens,saved_dollars,cache_hits',
      `${date(morning - day)},1,0,0,3,4,100,20,0.000000001,2,0.001,0`,
      `${date(morning)},2,1,0,3,8,151,20,0.0015,0,0,0`,
      '',
    ]);
    const [head, byKey] = await file('&group_by=key');
    assert.match(head ?? '', /^key,key_id,requests,/);
    assert.match(byKey ?? '', new RegExp(`^days's key,${user.keyId},3,1,0,`));
    const west = await get200(user, `/usage?${query}&time_zone_offset_minutes=-240`);
    assert.deepEqual(
      west.data.map(({ label, requests }: { label: string; requests: number }) => [label, requests]),
      [
        [date(morning - day), 2],
        [date(morning), 1],
      ],
    );
    for (const [wrong, param] of [
      ['time_zone_offset_minutes=330', 'time_zone_offset_minutes'],
      ['group_by=account', 'group_by'],
      ['tag=none', 'tag'],
      ['from=5&to=4', 'from'],
      [`group_by=hour&from=${morning - 100 * day}`, 'from'],
    ]) {
      const { status, body } = await user.client.call('GET', `/console/api/usage?${wrong}`);
      assert.deepEqual([status, body.error.param], [400, param]);
    }
  });

  test('usage as a file has every group, also if there are more than a report shows', async () => {
    const user = await signUp('groups');
    const count = 1200;
    await addToUsageHours(
      jobs.db,
      Array.from({ length: count }, (_, index) => ({
        ...{ account_id: user.account, api_key_id: index === 0 ? user.keyId : `key_${index}`, endpoint: 'chat' },
        ...{ capability: 'chat', model: `model-${index}`, vendor: 'sandbox', created_at: morning },
        ...{
          ended_at: morning + 100,
          first_at: null,
          outcome: 'completed' as const,
          input_tokens: 3,
          output_tokens: 4,
        },
        ...{ cached_tokens: null, cost: index + 1, saved: null },
      })),
    );
    for (const group of ['model', 'key']) {
      const shown = await get200(user, `/usage?group_by=${group}`);
      assert.deepEqual([shown.data.length, shown.total.requests], [1000, count]);
      const { headers } = { headers: { cookie: user.client.cookie } };
      const answer = await fetch(`${jobs.gateway.url}/console/api/usage.csv?group_by=${group}`, { headers });
      const [head, ...lines] = (await answer.text()).trim().split('\r\n');
      const requests = (head as string).split(',').indexOf('requests');
      assert.equal(lines.length, count);
      assert.ok(lines.every((line) => line.split(',')[requests] === '1'));
      // The cheapest is the last one; a key has its name.
      assert.match(lines.at(-1) as string, group === 'key' ? /^groups's key,key_/ : /^model-0,/);
    }
  });

  test('usage shows what the prompt cache of a vendor saved, by the prices of the route that served it, and by tags', async () => {
    const user = await signUp('cached');
    const long = { ...chat, messages: [{ role: 'system', content: 'Be brief. '.repeat(2000) }, ...chat.messages] };
    const cachedTokens: number[] = [];
    for (const metadata of [{ turn: '1' }, { turn: '2' }]) {
      const answer = await post(user, { ...long, metadata });
      const { usage } = (await answer.json()) as { usage: OpenAI.CompletionUsage };
      cachedTokens.push(usage.prompt_tokens_details?.cached_tokens ?? 0);
    }
    const [none, cached = 0] = cachedTokens;
    assert.ok(none === 0 && cached > 1000, cachedTokens.join());
    await eventually(async () => assert.equal((await get200(user, '/usage')).total.requests, 2));
    // 10,000 nano-dollars for a thousand, and 2,500 for cached ones.
    const saved = Math.floor(cached * 7.5) / 1e9;
    for (const [query, expected] of [
      ['', [cached, saved]],
      ['?group_by=key', [cached, saved]],
      [`?tag=${encodeURIComponent('turn:2')}`, [cached, saved]],
      [`?tag=${encodeURIComponent('turn:1')}`, [0, 0]],
    ] as const) {
      const { total } = await get200(user, `/usage${query}`);
      assert.deepEqual([total.cached_tokens, total.saved], expected, query);
    }
    const ofAll = await admin.answer(200, 'GET', `/usage?account=${user.account}`);
    assert.deepEqual([ofAll.total.cached_tokens, ofAll.total.saved], [cached, saved]);
    const own = await jobs.gateway.fetch('/v1/usage', { headers: { authorization: `Bearer ${user.key}` } });
    const { data } = (await own.json()) as { data: { results: { cached_tokens: number; saved: number }[] }[] };
    const [row] = data.flatMap(({ results }) => results);
    assert.deepEqual([row?.cached_tokens, row?.saved], [cached, saved]);
  });

  test('usage says how long requests took: half of them, 95 and 99 of a hundred', async () => {
    const user = await signUp('latency');
    const took = (ms: number) => ({ ended_at: morning + 10 * ms, first_at: ms % 2 === 0 ? morning + ms : null });
    await addJobs(user, [
      ...Array.from({ length: 100 }, (_, index) => ({ created_at: morning, ...took(100 - index) })),
      { created_at: morning, model: 'slow', ended_at: morning + 60_000, first_at: null },
      { created_at: morning, outcome: null, ended_at: null },
      { created_at: morning - 3 * day, ended_at: morning },
    ]);
    const query = `from=${morning - day}&to=${morning + day}`;
    const { latency } = await get200(user, `/usage?${query}&model=model`);
    assert.deepEqual(latency, {
      requests: 100,
      whole: { p50: 500, p95: 950, p99: 990 },
      first: { p50: 50, p95: 96, p99: 100 },
    });
    const slow = await get200(user, `/usage?${query}&model=slow`);
    const minute = { p50: 60_000, p95: 60_000, p99: 60_000 };
    assert.deepEqual(slow.latency, { requests: 1, whole: minute, first: null });
    assert.equal((await get200(user, `/usage?${query}`)).latency.requests, 101);
    const none = await get200(user, `/usage?${query}&model=none`);
    assert.deepEqual(none.latency, { requests: 0, whole: null, first: null });
    const ofOthers = await get200(bob, `/usage?${query}&model=slow`);
    assert.equal(ofOthers.latency.requests, 0);
  });
});

describe('the jobs as CSV', () => {
  test('the jobs as CSV are all of them, quoted, and hold no formulas', async () => {
    const user = await signUp('csv');
    await addJobs(user, [
      { model: '=HYPERLINK("http://x")', metadata: '{"a":"b, c"}' },
      {
        model: '+1',
        served_model: '-1',
        vendor: '@x',
        error_code: 'a\r\nb',
        error_details: JSON.stringify({ message: '=1+1, it broke', param: 'voice', vendorStatus: 418 }),
        cost: null,
        first_at: null,
        vendor_cost: 5_070_000,
      },
      ...Array.from({ length: 1200 }, () => ({ model: 'plain' })),
    ]);
    const answer = await fetch(`${jobs.gateway.url}/console/api/jobs.csv`, {
      headers: { cookie: user.client.cookie },
    });
    assert.match(answer.headers.get('content-type') ?? '', /^text\/csv/);
    assert.match(answer.headers.get('content-disposition') ?? '', /attachment/);
    const text = await answer.text();
    const lines = text.split('\r\n');
    assert.match(lines[0] ?? '', /^id,status,account_id,endpoint,/);
    assert.match(lines[0] ?? '', /,cost_dollars,vendor_cost_dollars,metadata$/);
    assert.match(text, /,,0\.00507,/);
    assert.match(lines[0] ?? '', /,error_code,error_message,error_param,vendor_status,/);
    assert.match(text, /,"'=1\+1, it broke",voice,418,/);
    // One cell has a line break of its own.
    assert.equal(lines.length, 1 + 1202 + 1 + 1);
    assert.match(text, /,"'=HYPERLINK\(""http:\/\/x""\)",/);
    assert.match(text, /,'\+1,'-1,'@x,/);
    assert.match(text, /,"a\r\nb",/);
    assert.match(text, /,"\{""a"":""b, c""\}"\r\n/);
    assert.match(text, /,0\.0015,/);
    assert.equal(new Set(text.match(/job_[0-9a-f]{32}/g)).size, 1202);
    const filtered = await user.client.call('GET', '/console/api/jobs.csv?model=none');
    assert.equal(filtered.status, 200);
  });

  test('the jobs as CSV are read no faster than they are taken, and not on once the client has left', async () => {
    const user = await signUp('slow');
    const metadata = JSON.stringify({ note: 'x'.repeat(4000) });
    const pages = 20;
    for (let page = 0; page < pages; page++) {
      await addJobs(
        user,
        Array.from({ length: 500 }, () => ({ metadata })),
      );
    }
    let read = 0;
    const watched = jobs.db.withPlugin({
      transformQuery: ({ node }) => {
        read++;
        return node;
      },
      transformResult: async ({ result }) => result,
    });
    const handover = new Handover();
    const app = new Koa<State>();
    app.silent = true;
    app.use(jobsCsv({ handover } as Services, watched, () => user.account));
    const server = app.listen(0);
    await once(server, 'listening');
    try {
      const request = get(`http://localhost:${(server.address() as AddressInfo).port}/`);
      const [response] = await once(request, 'response');
      // It fills the buffers between the two, and then it waits.
      await settled(() => read);
      assert.ok(read < pages, `${read} of ${pages} pages were read for a client that takes none`);
      const before = read;
      response.destroy();
      await eventually(async () => assert.equal(handover.size, 0, 'the export goes on'));
      assert.ok(read <= before + 1);
    } finally {
      server.close();
    }
  });
});

/** Waits until a number stays the same for half a second. */
async function settled(value: () => number): Promise<void> {
  for (let before = -1; before !== value(); ) {
    before = value();
    await delay(500);
  }
}

describe('while the database is away', () => {
  test('every question is answered 503 in bounded time', async () => {
    const restore = await stopDatabase(jobs.gateway);
    try {
      const session = jobs.gateway.url;
      const paths = ['/usage', '/jobs', `/jobs/job_${newJobId()}`, '/jobs.csv'];
      const answers = await Promise.all(
        paths.map((path) =>
          fetch(`${session}/admin/v1${path}`, { headers: { authorization: `Bearer ${admin.operatorKey}` } }),
        ),
      );
      assert.deepEqual(
        answers.map(({ status }) => status),
        paths.map(() => 503),
      );
      // The key is known to the api from before: it is the questions that are not answered.
      for (const answer of answers) assert.match(await answer.text(), /(usage|Jobs|Reports and lists) cannot be read/);
    } finally {
      await restore();
    }
    await eventually(async () => assert.equal((await admin.ask('GET', '/usage')).status, 200));
  });
});
