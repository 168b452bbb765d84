import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { openAsBlob } from 'node:fs';
import { mkdtemp, open, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { crc32, deflateSync } from 'node:zlib';
import { eventually } from '../../support/eventually.ts';
import { ChatTimes, percentile } from '../../support/faults/chat-times.ts';
import { isSoak } from '../../support/faults/load.ts';
import { megabytes, peakWhile } from '../../support/faults/resident-memory.ts';
import { builtProduct, type GatewayProcess, TestGateway } from '../../support/gateway.ts';

const edits = isSoak ? 100 : 16;
const fileBytes = (isSoak ? 20 : 8) * 1024 * 1024;
const memoryLimit = 400 * 1024 * 1024;

/** A PNG (1 pixel) that a long ancillary chunk makes as large as wanted. */
async function writeLargePng(path: string, bytes: number): Promise<void> {
  const chunk = (type: string, data: Buffer): Buffer => {
    const body = Buffer.concat([Buffer.from(type, 'latin1'), data]);
    const head = Buffer.alloc(4);
    head.writeUInt32BE(data.length);
    const tail = Buffer.alloc(4);
    tail.writeUInt32BE(crc32(body));
    return Buffer.concat([head, body, tail]);
  };
  const header = Buffer.from([0, 0, 0, 1, 0, 0, 0, 1, 8, 2, 0, 0, 0]);
  const file = await open(path, 'w');
  await file.write(Buffer.from('89504e470d0a1a0a', 'hex'));
  await file.write(chunk('IHDR', header));
  await file.write(chunk('prVt', Buffer.alloc(bytes, 7)));
  await file.write(chunk('IDAT', deflateSync(Buffer.from([0, 200, 30, 30]))));
  await file.write(chunk('IEND', Buffer.alloc(0)));
  await file.close();
}

/** The sandbox in a process of its own, so that its memory can be looked at. */
async function startSandboxProcess(): Promise<GatewayProcess & { baseUrl: string }> {
  const child = fork(join(builtProduct, 'sandbox/main.js'), [], { silent: true, execArgv: [] });
  const [message] = (await once(child, 'message', { signal: AbortSignal.timeout(120_000) })) as [{ port: number }];
  const end = async (): Promise<null> => {
    child.kill('SIGKILL');
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
    return null;
  };
  const pid = child.pid as number;
  return {
    ...{ child, pid, output: () => '', stop: end },
    kill: async () => void (await end()),
    baseUrl: `http://127.0.0.1:${message.port}/v1`,
  };
}

async function edit(gateway: TestGateway, image: Blob): Promise<void> {
  const form = new FormData();
  form.set('model', 'sandbox-image');
  form.set('prompt', 'make it red');
  form.set('size', '256x256');
  form.set('response_format', 'url');
  form.set('image', image, 'large.png');
  const headers = { authorization: `Bearer ${gateway.apiKey}` };
  const answer = await fetch(`${gateway.url}/v1/images/edits`, { method: 'POST', headers, body: form });
  const body = await answer.text();
  assert.equal(answer.status, 200, body);
  assert.match(JSON.parse(body).data[0].url, /^http/);
}

test(`POST /v1/images/edits streams ${edits} concurrent uploads of ${megabytes(fileBytes)} MB in bounded memory and leaves no file`, async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-test-upload-'));
  t.after(() => rm(folder, { recursive: true, force: true }));
  const sandbox = await startSandboxProcess();
  t.after(() => sandbox.kill());
  const probe = await ChatTimes.start();
  t.after(() => probe.stop());
  const vendors = { OPENAI_API_KEY: 'a-key', OPENAI_BASE_URL: probe.vendorUrl, SANDBOX_BASE_URL: sandbox.baseUrl };
  const gateway = await TestGateway.start({ settings: vendors });
  try {
    const path = join(folder, 'large.png');
    await writeLargePng(path, fileBytes);
    const image = await openAsBlob(path, { type: 'image/png' });
    // Only the soak's times are looked at.
    const [warmUp, measured, restMs] = isSoak ? [200, 1000, 0] : [0, 20, 20];
    await probe.times(gateway, Promise.resolve(), warmUp);
    const idle = await probe.times(gateway, Promise.resolve(), measured, restMs);
    const work = Promise.all(Array.from({ length: edits }, () => edit(gateway, image)));
    const processes = { api: gateway.apis[0], worker: gateway.workers[0], sandbox } as Record<string, GatewayProcess>;
    const watching = Object.entries(processes).map(async ([name, process]) => ({
      name,
      peak: await peakWhile(process, work),
    }));
    const busy = await probe.times(gateway, work, 1, restMs);
    await work;
    for (const { name, peak } of await Promise.all(watching)) {
      t.diagnostic(`${name}: at most ${megabytes(peak)} MB resident`);
      assert.ok(peak < memoryLimit, `${name} took ${megabytes(peak)} MB`);
    }
    const [before, during] = [percentile(idle, 0.99), percentile(busy, 0.99)];
    t.diagnostic(
      `chat p99: ${before.toFixed(1)} ms idle, ${during.toFixed(1)} ms during (${(during / before).toFixed(1)} times)`,
    );
    await eventually(async () => {
      const files = await readdir(join(gateway.dataDir, 'blobs'), { recursive: true });
      const uploads = files.filter((file) => /\/[0-9a-f-]{36}$/.test(file));
      assert.deepEqual(uploads, [], 'uploads stayed behind');
    });
  } finally {
    await gateway.stop();
  }
});
