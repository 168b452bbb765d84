import assert from 'node:assert/strict';
import { test } from 'node:test';
import { held } from '../../support/chat-requests.ts';
import { eventually } from '../../support/eventually.ts';
import { freePort } from '../../support/free-port.ts';
import { TestGateway } from '../../support/gateway.ts';
import { JobRecords } from '../../support/job-records.ts';

test('with SLUICE_LEDGER=off, records wait in Redis until ledger processes write them, each once, and a killed one is replaced', async () => {
  const records = await JobRecords.start({ settings: { SLUICE_LEDGER: 'off' } });
  const { gateway, db } = records;
  const rows = async () => await db.selectFrom('jobs').select(['id', 'outcome']).execute();
  const requests = async () =>
    await db.selectFrom('usage_hours').select('requests').where('account_id', '=', 'default').executeTakeFirst();
  try {
    const ask = async (count: number): Promise<void> => {
      await Promise.all(Array.from({ length: count }, () => gateway.client().chat.completions.create(held('Hi'))));
    };
    await ask(20);
    assert.deepEqual(await rows(), []);
    const first = await gateway.startLedger();
    await eventually(async () => assert.equal((await rows()).length, 20), 30_000);
    await first.kill();
    await ask(10);
    const [second] = await Promise.all([gateway.startLedger(), gateway.startLedger()]);
    // As to processes that read the configuration file again.
    second?.child.kill('SIGHUP');
    await eventually(async () => assert.equal((await rows()).length, 30), 60_000);
    assert.ok((await rows()).every(({ outcome }) => outcome === 'completed'));
    assert.equal((await requests())?.requests, 30);
    assert.equal(await second?.stop(), 0);
  } finally {
    await records.stop();
  }
});

test('a ledger process with METRICS_PORT answers health checks and scrapes', async () => {
  const gateway = await TestGateway.start({ settings: { SLUICE_LEDGER: 'off' }, workers: 0 });
  try {
    const port = await freePort();
    await gateway.startLedger({ METRICS_PORT: String(port) });
    for (const path of ['healthz', 'readyz']) {
      assert.equal((await fetch(`http://127.0.0.1:${port}/${path}`)).status, 200, path);
    }
    assert.match(
      await (await fetch(`http://127.0.0.1:${port}/metrics`)).text(),
      /^sluice_outbox_bytes\{role="ledger"\}/m,
    );
  } finally {
    await gateway.stop();
  }
});

test('a ledger or worker process whose health port is taken says so in one sentence, with the setting', async () => {
  const gateway = await TestGateway.start({ workers: 0 });
  try {
    const { port } = new URL(gateway.url);
    const sentence = (setting: string): RegExp =>
      new RegExp(`ended at once: The port ${port} on 127\\.0\\.0\\.1 is in use: set ${setting} to another one\\.\\n$`);
    await assert.rejects(gateway.startLedger({ METRICS_PORT: port }), sentence('METRICS_PORT'));
    await assert.rejects(gateway.startWorker({ WORKER_PORT: port }), sentence('WORKER_PORT'));
  } finally {
    await gateway.stop();
  }
});
