import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { Redis } from 'ioredis';
import { WebSocket } from 'ws';
import { findApiKeyByHash } from '../../../shared/accounts/api-keys.ts';
import { changeAccount } from '../../../shared/accounts/change-account.ts';
import { rotateApiKey } from '../../../shared/accounts/change-api-key.ts';
import { openDatabase } from '../../../shared/database/database.ts';
import { hashApiKey } from '../../../shared/ids.ts';
import { held } from '../../support/chat-requests.ts';
import { assertErrorAnswer } from '../../support/error-answers.ts';
import { eventually } from '../../support/eventually.ts';
import { TestGateway } from '../../support/gateway.ts';
import { refusedHandshake } from '../../support/job-socket-client.ts';
import { makeLimitedAccount } from '../../support/limited-account.ts';
import { makeApiKey, revokeKey } from '../../support/make-api-key.ts';
import { RawRequest } from '../../support/raw-request.ts';
import { ResponseSocketClient } from '../../support/response-socket-client.ts';
import { storedBlobs } from '../../support/stored-blobs.ts';

const megabyte = 1_000_000;
const path = '/v1/chat/completions';
const timeout = 30_000;
const form = 'multipart/form-data; boundary=b';
const formStart =
  '--b\r\ncontent-disposition: form-data; name="image"; filename="a.png"\r\ncontent-type: image/png\r\n\r\n';

/** The start of a large chat, without its end. */
const begun = (bytes: number): string =>
  `{"model":"sandbox-chat","messages":[{"role":"user","content":"${'x'.repeat(bytes)}`;

describe('bodies over 64 KiB', () => {
  let gateway: TestGateway;
  before(async () => {
    gateway = await TestGateway.start();
  });
  after(() => gateway.stop());

  /** Asks with the head of a large body only, whatever way it is sent. */
  async function askByHead(key: string): Promise<{ status: number; code: string }[]> {
    const chunk = `10400\r\n${'x'.repeat(0x10400)}\r\n`;
    const ways = [
      { head: { headers: { 'content-length': '15000000' } }, body: '{' },
      { head: { headers: { 'transfer-encoding': 'chunked' } }, body: chunk },
      { head: { path: '/v1/images/edits', headers: { 'content-length': '15000000', 'content-type': form } }, body: '' },
      {
        head: { path: '/v1/images/edits', headers: { 'transfer-encoding': 'chunked', 'content-type': form } },
        body: '',
      },
    ];
    return await Promise.all(
      ways.map(async ({ head, body }) => {
        const request = await RawRequest.open(gateway.url, { key, ...head });
        await request.send(body);
        const { status, body: text } = await request.answer();
        request.socket.destroy();
        return { status, code: JSON.parse(text).error.code as string };
      }),
    );
  }

  it('a large body of an account without balance gets 429 before it is read', { timeout }, async () => {
    const { key } = await makeLimitedAccount(gateway);
    for (const answer of await askByHead(key)) assert.deepEqual(answer, { status: 429, code: 'insufficient_quota' });
  });

  it('a large body with a revoked key that is still cached gets 401 before it is read', { timeout }, async () => {
    const key = await makeApiKey(gateway);
    await gateway.client({ apiKey: key }).chat.completions.create(held('Hi'));
    await revokeKey(gateway, key);
    for (const answer of await askByHead(key)) assert.deepEqual(answer, { status: 401, code: 'invalid_api_key' });
  });

  it('a large body of a suspended account gets 403 before it is read', { timeout }, async () => {
    const { id, key } = await makeLimitedAccount(gateway, { credit: 10 ** 9 });
    const db = await openDatabase(gateway);
    const redis = new Redis(gateway.redisUrl);
    await changeAccount(db, redis, id, { isSuspended: true });
    redis.disconnect();
    await db.destroy();
    for (const answer of await askByHead(key)) assert.deepEqual(answer, { status: 403, code: 'permission_denied' });
  });

  it('a large body of a key over its rate limit or budget gets 429 before it is read', { timeout }, async () => {
    const slow = await makeApiKey(gateway, { rpm: 1 });
    await gateway.client({ apiKey: slow }).chat.completions.create(held('Hi'));
    for (const answer of await askByHead(slow)) assert.deepEqual(answer, { status: 429, code: 'rate_limit_exceeded' });
    const poor = await makeApiKey(gateway, { budget: { amount: 0, period: 'never' } });
    // A budget is loaded by the first admission.
    await assertErrorAnswer(await post(held('Hi'), poor), 429, 'insufficient_quota');
    for (const answer of await askByHead(poor)) assert.deepEqual(answer, { status: 429, code: 'insufficient_quota' });
    const db = await openDatabase(gateway);
    const redis = new Redis(gateway.redisUrl);
    const old = await findApiKeyByHash(db, hashApiKey(poor));
    const next = old && (await rotateApiKey(db, redis, old, 60_000));
    redis.disconnect();
    await db.destroy();
    await assertErrorAnswer(await post(held('Hi'), next?.text as string), 429, 'insufficient_quota');
    for (const key of [poor, next?.text as string]) {
      for (const answer of await askByHead(key)) assert.deepEqual(answer, { status: 429, code: 'insufficient_quota' });
    }
  });

  const post = (body: object, key: string, headers: Record<string, string> = {}): Promise<Response> =>
    gateway.fetch(path, {
      method: 'POST',
      body: JSON.stringify(body),
      headers: { authorization: `Bearer ${key}`, ...headers },
    });

  it('a large body is answered if its account can pay, and replayed by its idempotency key when the balance is gone', async () => {
    const { id, key } = await makeLimitedAccount(gateway, { credit: 10 ** 10 });
    const large = held('x'.repeat(400_000), { max_tokens: 5 });
    const keyed = { 'idempotency-key': 'large' };
    const first = await post(large, key, keyed);
    assert.equal(first.status, 200);
    const redis = new Redis(gateway.redisUrl);
    const db = await openDatabase(gateway);
    try {
      await db
        .insertInto('credits')
        .values({ id: 'less', account_id: id, amount: -(10 ** 10), note: '', created_at: 0, created_by: 'test' })
        .execute();
      await redis.del(await accountKey(id));
      const again = await post(large, key, keyed);
      assert.equal(again.headers.get('idempotent-replayed'), 'true');
      assert.equal(await again.text(), await first.text());
      await assertErrorAnswer(await post(large, key), 429, 'insufficient_quota');
    } finally {
      redis.disconnect();
      await db.destroy();
    }
  });

  it('a large message on a response socket is refused early when its account cannot pay', { timeout }, async () => {
    const { key } = await makeLimitedAccount(gateway);
    const client = await ResponseSocketClient.open(gateway.url, { key });
    client.webSocket.send('x'.repeat(100_000), { fin: false });
    const { error } = await client.next();
    assert.equal(error.code, 'insufficient_quota');
    await client.closed;
  });
});

async function accountKey(id: string): Promise<string> {
  const { accountKeys } = await import('../../../shared/redis/keys.ts');
  return accountKeys.account(id);
}

describe('bodies and sockets of one API key', () => {
  let gateway: TestGateway;
  let other: string;
  before(async () => {
    gateway = await TestGateway.start({ settings: { SLUICE_BODIES_MIB: '8', SLUICE_KEY_SOCKETS: '2' } });
    other = await makeApiKey(gateway, { accountId: 'other' });
  });
  after(() => gateway.stop());

  const answerOf = (key: string): Promise<Response> =>
    gateway.fetch(path, {
      method: 'POST',
      body: JSON.stringify(held('x'.repeat(300_000), { max_tokens: 5 })),
      headers: { authorization: `Bearer ${key}` },
    });

  it('a key with too many bytes of unfinished bodies gets 429, while other keys are served and the bytes are freed', {
    timeout,
  }, async () => {
    const open: RawRequest[] = [];
    for (let count = 0; count < 2; count++) {
      const request = await RawRequest.open(gateway.url, {
        key: gateway.apiKey,
        headers: { 'content-length': String(3 * megabyte) },
      });
      await request.send(begun(1.5 * megabyte));
      open.push(request);
    }
    // Both have half of what is the key's, or one of them was refused.
    const [first] = await Promise.race(open.map(async (request) => [await request.answer()] as const));
    assert.equal(first?.status, 429);
    assert.match(first?.head ?? '', /retry-after: [12]\b/i);
    assert.equal(JSON.parse(first?.body ?? '').error.code, 'rate_limit_exceeded');
    assert.equal((await answerOf(other)).status, 200);
    for (const { socket } of open) socket.destroy();
    await eventually(async () => assert.equal((await answerOf(gateway.apiKey)).status, 200));
  });

  it('a response socket with too many bytes of an unfinished message gets an error and is closed', {
    timeout,
  }, async () => {
    const client = await ResponseSocketClient.open(gateway.url, { key: other });
    client.webSocket.send('x'.repeat(3 * megabyte), { fin: false });
    assert.equal((await client.next()).error.code, 'rate_limit_exceeded');
    await client.closed;
    assert.equal((await answerOf(other)).status, 200);
  });

  it('a key with too many open sockets gets 429, until one of them closes', { timeout }, async () => {
    const open = [1, 2].map(() => ResponseSocketClient.open(gateway.url, { key: other }));
    const [first, second] = await Promise.all(open);
    const headers = { authorization: `Bearer ${other}` };
    const refused = await refusedHandshake(`${gateway.url}/v1/responses`, { headers });
    await assertErrorAnswer(refused, 429, 'rate_limit_exceeded');
    first?.webSocket.close();
    const third = await eventually(() => ResponseSocketClient.open(gateway.url, { key: other }));
    for (const client of [second, third]) client?.webSocket.close();
  });
});

describe('connections that follow one job', () => {
  it('a job has at most 32 followers: the next gets 429 by events, by WebSocket and by its idempotency key', {
    timeout,
  }, async () => {
    const gateway = await TestGateway.start({ workers: 0 });
    const sockets: WebSocket[] = [];
    try {
      const headers = { prefer: 'respond-async', 'idempotency-key': 'one' };
      const made = await gateway.fetch(path, { method: 'POST', body: JSON.stringify(held('Hi')), headers });
      const { id } = (await made.json()) as { id: string };
      const bearer = { authorization: `Bearer ${gateway.apiKey}` };
      for (let count = 0; count < 32; count++) {
        sockets.push(new WebSocket(`${gateway.url.replace(/^http/, 'ws')}/v1/jobs/${id}/ws`, { headers: bearer }));
      }
      await Promise.all(
        sockets.map((socket) => new Promise((resolve, reject) => socket.once('open', resolve).once('error', reject))),
      );
      const refused = await refusedHandshake(`${gateway.url}/v1/jobs/${id}/ws`, { headers: bearer });
      await assertErrorAnswer(refused, 429, 'rate_limit_exceeded');
      await assertErrorAnswer(await gateway.fetch(`/v1/jobs/${id}/events`), 429, 'rate_limit_exceeded');
      const repeat = { method: 'POST', body: JSON.stringify(held('Hi')), headers: { 'idempotency-key': 'one' } };
      await assertErrorAnswer(await gateway.fetch(path, repeat), 429, 'rate_limit_exceeded');
      // Other jobs have watchers of their own.
      const other = await gateway.fetch(path, {
        method: 'POST',
        body: JSON.stringify(held('Hi')),
        headers: { prefer: 'respond-async' },
      });
      const otherId = ((await other.json()) as { id: string }).id;
      const watcher = new WebSocket(`${gateway.url.replace(/^http/, 'ws')}/v1/jobs/${otherId}/ws`, { headers: bearer });
      sockets.push(watcher);
      await new Promise((resolve, reject) => watcher.once('open', resolve).once('error', reject));
    } finally {
      for (const socket of sockets) socket.on('error', () => undefined).terminate();
      await gateway.stop();
    }
  });
});

describe('disk limits for files', () => {
  it('an account with too many unfinished upload bytes gets 429, and the files are deleted', { timeout }, async () => {
    const gateway = await TestGateway.start({ settings: { SLUICE_ACCOUNT_UPLOADS_MIB: '2' } });
    try {
      const request = await RawRequest.open(gateway.url, {
        key: gateway.apiKey,
        path: '/v1/images/edits',
        headers: { 'content-type': form, 'content-length': String(20 * megabyte) },
      });
      await request.send(formStart);
      await request.send(Buffer.alloc(4 * megabyte));
      const { status, body } = await request.answer();
      assert.deepEqual([status, JSON.parse(body).error.code], [429, 'rate_limit_exceeded']);
      request.socket.destroy();
      await eventually(async () => assert.deepEqual(await storedBlobs(gateway.dataDir), []));
    } finally {
      await gateway.stop();
    }
  });

  it('uploads and large bodies get 503 below the floor of free disk space, while small bodies are served', {
    timeout,
  }, async () => {
    const gateway = await TestGateway.start({ settings: { SLUICE_DISK_FLOOR_MIB: '10000000' } });
    try {
      for (const head of [{}, { path: '/v1/images/edits' }]) {
        const request = await RawRequest.open(gateway.url, {
          key: gateway.apiKey,
          ...head,
          headers: { 'content-length': '15000000', ...('path' in head ? { 'content-type': form } : {}) },
        });
        const { status, body } = await request.answer();
        assert.deepEqual([status, JSON.parse(body).error.code], [503, 'service_unavailable']);
        request.socket.destroy();
      }
      await gateway.client().chat.completions.create(held('Hi'));
    } finally {
      await gateway.stop();
    }
  });
});

describe('queue share of an account', () => {
  it('an account that fills its share of the queue gets 429, while other accounts are admitted', async () => {
    const gateway = await TestGateway.start({ workers: 0, settings: { SLUICE_QUEUE_LIMIT: '20' } });
    try {
      const ask = (key: string): Promise<Response> =>
        gateway.fetch(path, {
          method: 'POST',
          body: JSON.stringify(held('Hi')),
          headers: { prefer: 'respond-async', authorization: `Bearer ${key}` },
        });
      const keys = await Promise.all([1, 2].map(() => makeApiKey(gateway, { accountId: 'greedy' })));
      const statuses: number[] = [];
      for (let count = 0; count < 26; count++) statuses.push((await ask(keys[count % 2] as string)).status);
      assert.deepEqual([...new Set(statuses)].sort(), [202, 429]);
      const accepted = statuses.filter((status) => status === 202).length;
      assert.equal(accepted, 18, 'a tenth of the queue is left');
      const refused = await ask(keys[0] as string);
      assert.ok(Number(refused.headers.get('retry-after')) >= 1);
      await assertErrorAnswer(refused, 429, 'rate_limit_exceeded');
      for (const accountId of ['next', 'after-next']) {
        const key = await makeApiKey(gateway, { accountId });
        assert.equal((await ask(key)).status, 202, accountId);
      }
    } finally {
      await gateway.stop();
    }
  });
});
