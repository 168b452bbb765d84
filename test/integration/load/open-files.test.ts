import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { AdminKeys } from '../../support/admin-keys.ts';
import { held } from '../../support/chat-requests.ts';
import { eventually } from '../../support/eventually.ts';
import { freePort } from '../../support/free-port.ts';
import { TestGateway } from '../../support/gateway.ts';

test('a worker without file descriptors lives on, says so, and does not take its vendor for unhealthy', {
  timeout: 120_000,
}, async (t) => {
  const gateway = await TestGateway.start();
  t.after(() => gateway.stop());
  const [worker] = gateway.workers;
  assert.ok(worker);
  const admin = await AdminKeys.open(gateway);
  const report = async () => (await admin.answer(200, 'GET', '/workers')).data[0];
  const limitFiles = (count: number) => execFileSync('prlimit', ['--pid', String(worker.pid), `--nofile=${count}:`]);
  const ask = async (): Promise<number> => {
    const body = JSON.stringify(held('WORDS:20@20'));
    return (await gateway.fetch('/v1/chat/completions', { method: 'POST', body })).status;
  };
  assert.equal(await ask(), 200);
  // What it has open stays so, and nothing can be opened: a new one gets the lowest free number.
  const open = new Set(readdirSync(`/proc/${worker.pid}/fd`).map(Number));
  limitFiles(Array.from({ length: open.size + 1 }, (_, number) => number).findIndex((number) => !open.has(number)));
  const statuses = await Promise.all(Array.from({ length: 30 }, ask));
  assert.ok(statuses.includes(503), statuses.join());
  const before = (await report()).seen_at;
  await eventually(async () => assert.ok((await report()).seen_at > before, 'it reports no more'), 30_000);
  assert.deepEqual(
    (await report()).routes.map(({ state }: { state: string }) => state).filter((state: string) => state !== 'closed'),
    [],
  );
  limitFiles(4096);
  assert.equal(await ask(), 200);
  assert.match(worker.output(), /this process has no file descriptors left: raise its limit/);
  assert.doesNotMatch(worker.output(), /unhandled error/);
});

test('an api that may open fewer files than SLUICE_MAX_CONNECTIONS says so at its start, and another does not', {
  timeout: 60_000,
}, async (t) => {
  const gateway = await TestGateway.start({ workers: 0, settings: { SLUICE_MAX_CONNECTIONS: '300' } });
  t.after(() => gateway.stop());
  const warning = /This process may have 200 files and connections open, and SLUICE_MAX_CONNECTIONS is 300/;
  assert.doesNotMatch(gateway.apis[0]?.output() ?? '', /files and connections open/);
  const program = [process.execPath, join(gateway.product, 'api/main.js')];
  const child = spawn('prlimit', ['--nofile=200:200', ...program], {
    ...{ env: gateway.settings({ PORT: String(await freePort()) }), stdio: ['ignore', 'pipe', 'ignore'] },
  });
  t.after(() => child.kill('SIGKILL'));
  let output = '';
  child.stdout?.on('data', (chunk) => {
    output += chunk;
  });
  await eventually(() => assert.match(output, warning), 30_000);
});
