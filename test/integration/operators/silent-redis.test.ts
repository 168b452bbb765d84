import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { AdminKeys } from '../../support/admin-keys.ts';
import { ConsoleClient } from '../../support/console-client.ts';
import { eventually } from '../../support/eventually.ts';
import { TestGateway } from '../../support/gateway.ts';
import { startRedis, type TestRedis } from '../../support/redis.ts';

const admin = { SLUICE_ADMIN_EMAIL: 'operator@example.com', SLUICE_ADMIN_PASSWORD: 'an operator password' };

let redis: TestRedis;
let gateway: TestGateway;
let keys: AdminKeys;
let operator: ConsoleClient;
before(async () => {
  redis = await startRedis();
  gateway = await TestGateway.start({ settings: admin, redisUrl: redis.url });
  keys = await AdminKeys.open(gateway);
  operator = new ConsoleClient(gateway.url);
  assert.equal((await operator.signIn(admin.SLUICE_ADMIN_EMAIL, admin.SLUICE_ADMIN_PASSWORD)).status, 200);
});
after(async () => {
  await gateway?.stop();
  await redis?.stop();
});

async function statusOf(response: Promise<{ status: number }>): Promise<number | string> {
  // Longer than any of them may take, and shorter than a test may.
  const late = new Promise<string>((resolve) => setTimeout(resolve, 25_000, 'no response').unref());
  return await Promise.race([response.then(({ status }) => status), late]);
}

test('a silent Redis leaves no request of an operator or a key without a response, and a change is made once it is back', async () => {
  const { id } = (await operator.call('POST', '/admin/v1/accounts', { name: 'Tenant', is_unlimited: true })).body;
  const { key } = await keys.create({}, id);
  const headers = { authorization: `Bearer ${key}` };
  const chat = { model: 'sandbox-chat', messages: [{ role: 'user', content: 'Hello' }] };
  const ask = (): Promise<Response> =>
    gateway.fetch('/v1/chat/completions', { method: 'POST', headers, body: JSON.stringify(chat) });
  assert.equal((await ask()).status, 200);
  assert.equal((await operator.call('GET', '/console/queues/api/queues')).status, 200);
  process.kill(redis.pid, 'SIGSTOP');
  try {
    const statuses = await Promise.all([
      statusOf(operator.call('PATCH', `/admin/v1/accounts/${id}`, { suspended: true })),
      statusOf(operator.call('GET', '/console/queues/api/queues')),
      statusOf(keys.ask('GET', '/accounts')),
      statusOf(gateway.fetch('/v1/models', { headers })),
      statusOf(gateway.fetch('/v1/key', { headers })),
    ]);
    assert.deepEqual(statuses, [503, 503, 503, 503, 503]);
  } finally {
    process.kill(redis.pid, 'SIGCONT');
  }
  await eventually(async () => assert.equal((await ask()).status, 403));
  assert.equal((await operator.call('GET', `/admin/v1/accounts/${id}`)).body.suspended, true);
});
