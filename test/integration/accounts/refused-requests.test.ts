import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { type RefusedBounds, RefusedRequests } from '../../../api/refused-requests/refused-requests.ts';
import type { Context } from '../../../api/state.ts';
import { ApiError } from '../../../shared/errors.ts';
import { newJobId } from '../../../shared/ids.ts';
import { refusedKeys } from '../../../shared/redis/keys.ts';
import { connectRedis, type RedisHandle } from '../../../shared/redis/redis.ts';
import { createLogger } from '../../../shared/runtime/log.ts';
import { ConsoleClient } from '../../support/console-client.ts';
import { eventually } from '../../support/eventually.ts';
import { TestGateway } from '../../support/gateway.ts';
import { startRedis, type TestRedis } from '../../support/redis.ts';

const admin = { SLUICE_ADMIN_EMAIL: 'root@example.com', SLUICE_ADMIN_PASSWORD: 'the first password' };
const hello = { model: 'sandbox-chat', messages: [{ role: 'user', content: 'Hello' }] };

describe('lookup of a refused request', () => {
  let gateway: TestGateway;
  let owner: ConsoleClient;
  let stranger: ConsoleClient;
  let operator: ConsoleClient;
  let key: string;

  before(async () => {
    gateway = await TestGateway.start({ settings: { ...admin, SLUICE_SIGN_UP_CREDIT: '5' } });
    owner = new ConsoleClient(gateway.url);
    stranger = new ConsoleClient(gateway.url);
    operator = new ConsoleClient(gateway.url);
    // One after the other: hashing passwords takes a busy machine its time.
    await owner.signUp('owner@example.com');
    await stranger.signUp('stranger@example.com');
    assert.equal((await operator.signIn(admin.SLUICE_ADMIN_EMAIL, admin.SLUICE_ADMIN_PASSWORD)).status, 200);
    key = (await owner.call('POST', '/console/api/keys', { name: 'Mine' })).body.key;
  });
  after(async () => gateway?.stop());

  const post = (body: object, bearer = key, path = '/v1/chat/completions') =>
    gateway.fetch(path, {
      method: 'POST',
      headers: { authorization: `Bearer ${bearer}` },
      body: JSON.stringify(body),
    });
  const idOf = (answer: Response): string => answer.headers.get('x-request-id') as string;
  const own = (client: ConsoleClient, id: string) => client.call('GET', `/console/api/requests/${id}`);
  const any = (id: string) => operator.call('GET', `/admin/v1/requests/${id}`);

  it('a refused request is found by id, with its error, by its own account and by operators only', async () => {
    const answer = await post({ ...hello, temperature: 'hot' });
    const { error } = (await answer.json()) as { error: Record<string, unknown> };
    const id = idOf(answer);
    assert.match(id, /^req_/);
    const found = await eventually(async () => {
      const { status, body } = await own(owner, id);
      assert.equal(status, 200);
      return body;
    });
    const { created_at, key: usedKey, ...refusal } = found.refusal;
    assert.deepEqual([found.id, found.job_id], [id, null]);
    assert.deepEqual(refusal, { method: 'POST', path: '/v1/chat/completions', status: 400, error });
    assert.deepEqual([typeof created_at, usedKey.name], ['number', 'Mine']);
    assert.deepEqual((await any(id)).body, found);
    assert.equal((await own(stranger, id)).status, 404);
    assert.equal((await own(stranger, `req_${'0'.repeat(32)}`)).status, 404);
    assert.equal((await own(owner, 'nonsense')).status, 404);
  });

  it('a request without a valid key is found by operators only, without any part of the key', async () => {
    const wrong = `sk-sluice-${'x'.repeat(43)}`;
    const id = idOf(await post(hello, wrong));
    await eventually(async () => assert.equal((await any(id)).status, 200));
    const { body } = await any(id);
    assert.deepEqual([body.account_id, body.refusal.key, body.refusal.error.code], [null, null, 'invalid_api_key']);
    assert.ok(!JSON.stringify(body).includes(wrong.slice(10)));
    assert.equal((await own(owner, id)).status, 404);
  });

  it('a request that made a job is found as the job by each of its ids, by its own account and by operators', async () => {
    const answer = await post(hello);
    const { id: wireId } = (await answer.json()) as { id: string };
    const jobId = idOf(answer);
    for (const id of [jobId, wireId, jobId.replace('job_', 'req_'), jobId.replace('job_', '')]) {
      const { status, body } = await own(owner, id);
      assert.deepEqual([status, body.job_id, body.refusal], [200, jobId, null], id);
      assert.deepEqual((await any(id)).body, body);
      assert.equal((await own(stranger, id)).status, 404);
    }
  });
});

describe('RefusedRequests', () => {
  let server: TestRedis;
  let redis: RedisHandle;
  const { log } = createLogger('silent', 'test');
  const error = new ApiError('invalid_request_error', 'No.', { param: 'model' });

  before(async () => {
    server = await startRedis();
    redis = await connectRedis(server.url, log);
  });
  after(async () => {
    await redis?.close();
    await server?.stop();
  });

  /** A request as the middleware that tells errors has it. @param account '' of a stranger */
  const request = (account: string, path = '/v1/models'): [Context, string] => {
    const id = newJobId();
    const caller = account === '' ? undefined : { account, apiKeyId: `key of ${account}` };
    const state = { caller, headers: { 'x-request-id': `req_${id}` } };
    return [{ method: 'GET', path, state } as unknown as Context, id];
  };

  it('RefusedRequests keeps a bounded number per account and second, and leaves room for other accounts', async () => {
    const requests = new RefusedRequests(redis.client, log);
    const flood = Array.from({ length: 5000 }, () => request('flooding'));
    for (const [ctx] of flood) requests.note(ctx, error);
    for (let count = 0; count < 50; count++) requests.note(request('')[0], error);
    const [ctx, id] = request('quiet');
    requests.note(ctx, error);
    await requests.close();
    assert.equal((await requests.find(id))?.message, 'No.');
    assert.equal(await redis.client.hlen(refusedKeys.rows), 21);
    assert.equal(await redis.client.zcard(`${refusedKeys.accounts}flooding`), 10);
  });

  it('RefusedRequests keeps the newest of each account and in total, until they expire', async () => {
    await redis.client.flushall();
    const bounds = { keptMs: 60_000, maxOfAccount: 3, maxInAll: 5 };
    const keep = async (account: string, by: RefusedBounds = bounds): Promise<string> => {
      const requests = new RefusedRequests(redis.client, log, by);
      const [ctx, id] = request(account);
      requests.note(ctx, error);
      await requests.close();
      // The order within a millisecond is nobody's.
      await eventually(async () => assert.notEqual(newJobId().slice(0, 12), id.slice(0, 12)));
      return id;
    };
    const kept = async (): Promise<string[]> => (await redis.client.hkeys(refusedKeys.rows)).toSorted();
    const first = await keep('c');
    const [, ...ofOne] = [await keep('a b'), await keep('a b'), await keep('a b'), await keep('a b')];
    const other = await keep('d');
    assert.deepEqual(await kept(), [first, ...ofOne, other], 'of one account the newest three');
    const sixth = await keep('d');
    assert.deepEqual(await kept(), [...ofOne, other, sixth], 'in all the newest five');
    assert.equal(await redis.client.zcard(`${refusedKeys.accounts}c`), 0);
    assert.equal(await redis.client.zcard(`${refusedKeys.accounts}a b`), 3);
    for (const key of await redis.client.keys('*')) assert.ok((await redis.client.pttl(key)) > 0, key);
    // Its time is over.
    await redis.client.zadd(refusedKeys.all, 1, `${sixth} d`);
    const newest = await keep('e', { ...bounds, maxInAll: 10 });
    assert.deepEqual(await kept(), [...ofOne, other, newest]);
    assert.deepEqual(await redis.client.zrange(`${refusedKeys.accounts}d`, 0, '-1'), [other]);
    const impatient = new RefusedRequests(redis.client, log, { ...bounds, keptMs: -1 });
    assert.equal(await impatient.find(newest), undefined);
  });

  it('RefusedRequests keeps nothing of unauthenticated requests outside the API', async () => {
    await redis.client.flushall();
    const requests = new RefusedRequests(redis.client, log);
    requests.note(request('', '/console/api/session')[0], error);
    requests.note(request('', '/wp-login.php')[0], error);
    await requests.close();
    assert.deepEqual(await redis.client.keys('*'), []);
  });
});
