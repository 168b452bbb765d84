import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { accountKeys } from '../../shared/redis/keys.ts';
import { AdminKeys, type KeyAnswer } from '../support/admin-keys.ts';
import { ConsoleClient } from '../support/console-client.ts';
import { eventually } from '../support/eventually.ts';
import { loadProduct } from '../support/gateway.ts';
import { JobRecords, later } from '../support/job-records.ts';
import { makeApiKey } from '../support/make-api-key.ts';

const { readLiveJobs } = await loadProduct<typeof import('../../api/management/console/live-jobs.ts')>(
  'api/management/console/live-jobs',
);

/** What a request says, and nobody but its own account is to read. */
const prompt = 'The treasure lies under the old oak';
const messages = [{ role: 'user', content: prompt }];
/** Chats that take until they are cancelled. */
const endless = { model: 'sandbox-chat', messages, sandbox: { tokens_per_second: 1 }, max_tokens: 100_000 };

const ann = 'ann';
/** Its holds lie in the same key as ann's. */
const neighbour = Array.from({ length: 10_000 }, (_, index) => `neighbour-${index}`).find(
  (account) => accountKeys.tag(account) === accountKeys.tag(ann),
) as string;
const accounts = [ann, neighbour, 'carl'] as const;

let jobs: JobRecords;
let admin: AdminKeys;
const keys = new Map<string, string>();
/** All that operators have been answered here. */
let told = '';

before(async () => {
  // Its worker comes later: until then jobs wait.
  jobs = await JobRecords.start({ workers: 0 });
  admin = await AdminKeys.open(jobs.gateway);
  for (const account of accounts) keys.set(account, await makeApiKey(jobs.gateway, { accountId: account }));
});
after(() => jobs?.stop());

async function ask(method: string, path: string, status = 200): Promise<KeyAnswer> {
  const answer = await admin.answer(status, method, path);
  told += JSON.stringify(answer);
  return answer;
}

const idsOf = (list: KeyAnswer): string[] => list.data.map(({ id }: { id: string }) => id);
const live = async (query = ''): Promise<string[]> => idsOf(await ask('GET', `/jobs/live?${query}`));

/** Begins work of an account that takes until it is cancelled, and answers its job's id. */
async function begin(account: string, body: object = endless, path?: string): Promise<string> {
  const headers = { authorization: `Bearer ${keys.get(account)}` };
  return `job_${await jobs.postLater(body, headers, path)}`;
}

describe('unfinished jobs of all accounts', () => {
  const image = { model: 'sandbox-image', prompt, size: '256x256' };
  let first: string;
  let second: string;
  let third: string;

  before(async () => {
    first = await begin(ann);
    second = await begin(neighbour, image, '/v1/images/generations');
    third = await begin('carl', { ...endless, model: 'sandbox-reasoning' });
  });

  test('unfinished jobs of all accounts are listed while they wait, newest first, and narrowed down', async () => {
    assert.deepEqual(await live(), [third, second, first]);
    assert.deepEqual(await live(`account=${ann}`), [first]);
    assert.deepEqual(await live('account=*'), []);
    assert.deepEqual(await live('account=nobody'), []);
    assert.deepEqual(await live('capability=image'), [second]);
    assert.deepEqual(await live('capability=chat'), [third, first]);
    assert.deepEqual(await live('model=sandbox-reasoning'), [third]);
    assert.deepEqual(await live(`model=sandbox-reasoning&account=${ann}`), []);
    assert.deepEqual(await live('endpoint=images.generations'), [second]);
    assert.deepEqual(await live('status=queued'), [third, second, first]);
    assert.deepEqual(await live('status=in_progress'), []);
    const { data } = await ask('GET', `/jobs/live?account=${ann}`);
    assert.deepEqual([data[0].account_id, data[0].status, data[0].ended_at], [ann, 'queued', null]);
    assert.deepEqual(await live(`key=${data[0].key.id}`), [first]);
    for (const query of ['capability=none', 'status=failed', 'model=a&model=b']) {
      const { error } = await ask('GET', `/jobs/live?${query}`, 400);
      assert.equal(error.param, query.split('=')[0]);
    }
  });

  test('unfinished jobs of all accounts are so many as were asked for, the newest, and it is told that there are more', async () => {
    const newest = await readLiveJobs(jobs.redis, { account: undefined }, 2);
    assert.deepEqual([newest.jobs.map(({ id }) => `job_${id}`), newest.hasMore], [[third, second], true]);
    const chats = await readLiveJobs(jobs.redis, { account: undefined, capability: 'chat' }, 2);
    assert.deepEqual([chats.jobs.map(({ id }) => `job_${id}`), chats.hasMore], [[third, first], false]);
  });

  test('unfinished jobs of all accounts are opened and cancelled while they wait and while they run', async () => {
    assert.equal((await ask('GET', `/jobs/${third}`)).status, 'queued');
    const waiting = await ask('DELETE', `/jobs/${third}`);
    assert.deepEqual([waiting.id, waiting.status, waiting.account_id], [third, 'cancelled', 'carl']);
    assert.deepEqual(await live(), [second, first]);
    await jobs.gateway.startWorker();
    const running = await eventually(async () => {
      const job = await ask('GET', `/jobs/${first}`);
      assert.equal(job.status, 'in_progress');
      return job;
    });
    assert.ok(running.began_at >= running.created_at, 'its timeline tells when it began');
    assert.deepEqual(await live('status=in_progress&capability=chat'), [first]);
    const { status, body } = await read(ann, first);
    assert.deepEqual([status, body.status], [200, 'in_progress']);
    assert.equal((await ask('DELETE', `/jobs/${first}?account=carl`, 404)).error.code, 'not_found');
    const cancelled = await ask('DELETE', `/jobs/${first}`);
    assert.deepEqual([cancelled.status, cancelled.account_id], ['cancelled', ann]);
    const ended = await read(ann, first);
    assert.deepEqual([ended.body.status, ended.body.error.code], ['cancelled', 'cancelled']);
    assert.match(ended.body.error.message, /by an operator/);
    await jobs.ended(first.slice('job_'.length));
    assert.equal((await ask('DELETE', `/jobs/${first}`)).status, 'cancelled', 'once more changes nothing');
    await eventually(async () => assert.ok(!(await live()).includes(first), 'it is still listed'));
    assert.deepEqual(idsOf(await ask('GET', `/jobs?account=${ann}&status=cancelled&capability=chat`)), [first]);
    assert.equal(await jobs.redis.zcard(accountKeys.holds('carl')), 0, 'and nothing is held for it any more');
  });

  test('unfinished jobs of all accounts tell a caller who is connected that an operator cancelled them', async () => {
    const stream = await jobs.post({ ...endless, stream: true }, { authorization: `Bearer ${keys.get('carl')}` });
    const id = stream.headers.get('x-request-id') as string;
    assert.ok((await live('account=carl')).includes(id), 'plain ones are listed, too');
    await ask('DELETE', `/jobs/${id}`);
    assert.match(await stream.text(), /cancelled by an operator/);
  });
});

async function read(account: string, id: string) {
  const headers = { authorization: `Bearer ${keys.get(account)}` };
  const answer = await jobs.gateway.fetch(`/v1/jobs/${id}`, { headers });
  return { status: answer.status, body: (await answer.json()) as KeyAnswer };
}

describe('what other accounts have asked and were answered', () => {
  test('what other accounts have asked and were answered is in no answer for operators', async () => {
    const background = { model: 'sandbox-chat', input: prompt, background: true };
    const answer = await jobs.post(background, { authorization: `Bearer ${keys.get(ann)}` }, { path: '/v1/responses' });
    assert.equal(answer.status, 200);
    const id = answer.headers.get('x-request-id') as string;
    await ask('GET', `/jobs/${id}`);
    await live();
    await jobs.ended(id.slice('job_'.length));
    const kept = await begin(ann, { model: 'sandbox-chat', messages });
    await jobs.ended(kept.slice('job_'.length));
    for (const path of [`/jobs/${id}`, `/jobs/${kept}`, '/jobs', '/jobs/live']) await ask('GET', path);
    for (const job of [id, kept]) await ask('DELETE', `/jobs/${job}`);
    const csv = await (await admin.ask('GET', '/jobs.csv')).text();
    assert.ok(csv.includes(kept));
    const { body } = await read(ann, kept);
    const said = body.result.choices[0].message.content as string;
    assert.ok(said.length > 10);
    for (const secret of [prompt, 'treasure', said]) {
      assert.ok(!told.includes(secret) && !csv.includes(secret), `operators are told “${secret}”`);
    }
    for (const path of [`/jobs/${kept}/events`, `/jobs/${kept}/ws`]) {
      assert.equal((await admin.ask('GET', path)).status, 404, path);
    }
  });
});

describe('users', () => {
  test('users get no other account’s unfinished jobs by the routes of operators, nor by their own', async () => {
    const id = await begin(ann);
    const user = new ConsoleClient(jobs.gateway.url);
    await user.signUp('user@example.com');
    for (const [method, path] of [
      ['GET', '/jobs'],
      ['GET', '/jobs/live'],
      ['GET', `/jobs/${id}`],
      ['DELETE', `/jobs/${id}`],
    ] as const) {
      assert.equal((await user.call(method, `/admin/v1${path}`)).status, 403, `${method} ${path}`);
      const headers = { authorization: `Bearer ${keys.get(ann)}` };
      assert.equal(
        (await jobs.gateway.fetch(`/admin/v1${path}`, { method, headers })).status,
        403,
        `${method} ${path}`,
      );
    }
    const { body } = await user.call('GET', `/console/api/jobs/live?account=${ann}`);
    assert.deepEqual(body.data, []);
    assert.equal((await user.call('DELETE', `/console/api/jobs/${id}?account=${ann}`)).status, 404);
    const headers = { authorization: `Bearer ${keys.get('carl')}`, ...later };
    assert.equal((await jobs.gateway.fetch(`/v1/jobs/${id}`, { method: 'DELETE', headers })).status, 404);
    assert.notEqual((await ask('GET', `/jobs/${id}`)).status, 'cancelled');
    await ask('DELETE', `/jobs/${id}`);
  });
});
