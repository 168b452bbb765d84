import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { Redis } from 'ioredis';
import { mayReadMetrics } from '../../../shared/runtime/metrics-access.ts';
import { assertErrorAnswer } from '../../support/error-answers.ts';
import { freePort } from '../../support/free-port.ts';
import { TestGateway } from '../../support/gateway.ts';
import { RawRequest } from '../../support/raw-request.ts';

const token = 'a token of the operator';
const bearer = { authorization: `Bearer ${token.replaceAll(' ', '-')}` };

describe('GET /metrics', () => {
  let gateway: TestGateway;
  before(async () => {
    gateway = await TestGateway.start({ workers: 0 });
  });
  after(() => gateway.stop());

  const ask = async (headers: Record<string, string>): Promise<number> => {
    const request = await RawRequest.open(gateway.url, { method: 'GET', path: '/metrics', headers });
    const { status } = await request.answer();
    request.socket.destroy();
    return status;
  };

  it('GET /metrics is served to this machine only, and returns 403 through a proxy or under a foreign host name', async () => {
    assert.equal(await ask({}), 200);
    assert.equal(await ask({ host: 'localhost:8080' }), 200);
    for (const name of ['x-forwarded-for', 'forwarded', 'x-real-ip', 'via', 'x-forwarded-host']) {
      assert.equal(await ask({ [name]: '203.0.113.7' }), 403, name);
    }
    for (const host of ['rebind.evil.example', 'localhost.evil.example:80', '127.0.0.1.evil.example', '10.0.0.1']) {
      assert.equal(await ask({ host }), 403, host);
    }
    const headers = { 'x-forwarded-for': '203.0.113.7' };
    await assertErrorAnswer(await gateway.fetch('/metrics', { headers }), 403, 'permission_denied');
    const stranger = { socket: { remoteAddress: '203.0.113.7' }, headers: { host: 'localhost' } };
    assert.equal(mayReadMetrics(stranger as never, undefined), false);
    assert.equal(mayReadMetrics({ ...stranger, headers: bearer } as never, bearer.authorization.slice(7)), true);
  });

  it('GET /metrics collects once for all concurrent requests', async () => {
    const redis = new Redis(gateway.redisUrl);
    const pings = async () => Number(/^cmdstat_ping:calls=(\d+)/m.exec(await redis.info('commandstats'))?.[1] ?? 0);
    const before = await pings();
    const pages = await Promise.all(
      Array.from({ length: 60 }, async () => (await fetch(`${gateway.url}/metrics`)).text()),
    );
    // The first may be collected at once, all others wait for the next.
    assert.ok(new Set(pages).size <= 2, `${new Set(pages).size} collections`);
    // Connections ping by themselves, too.
    assert.ok((await pings()) - before < 15);
    redis.disconnect();
  });
});

describe('GET /metrics with METRICS_TOKEN and METRICS_PORT', () => {
  it('GET /metrics with METRICS_TOKEN accepts the token only, on api and worker', async () => {
    const settings = { METRICS_TOKEN: bearer.authorization.slice(7) };
    const gateway = await TestGateway.start({ workers: 0, settings });
    try {
      const port = await freePort();
      await gateway.startWorker({ WORKER_PORT: String(port) });
      for (const url of [gateway.url, `http://127.0.0.1:${port}`]) {
        for (const headers of [
          {},
          { authorization: 'Bearer other' },
          { authorization: `Basic ${settings.METRICS_TOKEN}` },
        ]) {
          assert.equal((await fetch(`${url}/metrics`, { headers: { ...headers } })).status, 403);
        }
        const answer = await fetch(`${url}/metrics`, { headers: { ...bearer, 'x-forwarded-for': '203.0.113.7' } });
        assert.equal(answer.status, 200);
        assert.match(await answer.text(), /^sluice_redis_lag_seconds/m);
      }
    } finally {
      await gateway.stop();
    }
  });

  it('GET /metrics is served on METRICS_PORT only when it is set', async () => {
    const port = await freePort();
    const gateway = await TestGateway.start({ workers: 0, settings: { METRICS_PORT: String(port) } });
    try {
      await assertErrorAnswer(await gateway.fetch('/metrics'), 404, 'not_found');
      const answer = await fetch(`http://127.0.0.1:${port}/metrics`);
      assert.match(await answer.text(), /^sluice_unsent_bytes\{[^}]*\} 0$/m);
      assert.equal((await fetch(`http://127.0.0.1:${port}/`)).status, 404);
      assert.equal(await gateway.apis[0]?.stop(), 0);
    } finally {
      await gateway.stop();
    }
  });
});

describe('GET /', () => {
  it('GET / and the console settings reveal no version, vendors or models', async () => {
    const gateway = await TestGateway.start({ workers: 0, settings: { OPENAI_API_KEY: 'sk-none' } });
    try {
      const page = await (await fetch(`${gateway.url}/`)).text();
      assert.doesNotMatch(page, /<small>|Vendors|Models<|openai,/);
      assert.doesNotMatch(await (await fetch(`${gateway.url}/console/api/settings`)).text(), /version|vendors|models/);
    } finally {
      await gateway.stop();
    }
  });
});
