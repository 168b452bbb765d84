import assert from 'node:assert/strict';
import { once } from 'node:events';
import { after, before, describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { streamed } from '../support/chat-requests.ts';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/free-port.ts';
import { type GatewayProcess, TestGateway } from '../support/gateway.ts';
import { readSse, type WireEvent } from '../support/sse-events.ts';

/** Makes a process fail by SIGUSR2 as a defect would: an error in a promise, or thrown, that nothing takes. */
function failing(how: 'rejection' | 'exception'): Record<string, string> {
  const fault = how === 'rejection' ? 'Promise.reject(new Error("planted"))' : '{ throw new Error("planted") }';
  const code = `process.on("SIGUSR2", () => ${fault})`;
  return { NODE_OPTIONS: `--import data:text/javascript,${encodeURIComponent(code)}` };
}

/** A stream of 20 words that takes two seconds, once its first event is there. */
async function beginStream(gateway: TestGateway): Promise<AsyncGenerator<WireEvent>> {
  const body = JSON.stringify(streamed('WORDS:20', { sandbox: { tokens_per_second: 10 } }));
  const events = readSse(await gateway.fetch('/v1/chat/completions', { method: 'POST', body }));
  await events.next();
  return events;
}

async function wordsOf(events: AsyncGenerator<WireEvent>): Promise<string> {
  let text = '';
  for await (const { data } of events) text += data;
  return text;
}

async function assertWhole(streams: AsyncGenerator<WireEvent>[]): Promise<void> {
  for (const text of await Promise.all(streams.map(wordsOf))) {
    assert.match(text, /word20/);
    assert.match(text, /\[DONE\]$/);
  }
}

async function exitCode({ child }: GatewayProcess): Promise<number | null> {
  const [code] = child.exitCode === null ? await once(child, 'exit') : [child.exitCode];
  return code;
}

describe('unhandled errors', () => {
  let gateway: TestGateway;
  before(async () => {
    gateway = await TestGateway.start({ apis: 0, workers: 0, settings: { SLUICE_SHUTDOWN_SECONDS: '20' } });
  });
  after(() => gateway.stop());

  for (const how of ['rejection', 'exception'] as const) {
    it(`an api with an unhandled ${how} completes its running streams, accepts no new ones, and exits with 1`, async () => {
      const worker = await gateway.startWorker();
      const api = await gateway.startApi(failing(how));
      const streams = await Promise.all(Array.from({ length: 5 }, () => beginStream(gateway)));
      const exited = exitCode(api);
      api.child.kill('SIGUSR2');
      await assertWhole(streams);
      assert.equal(await exited, 1);
      assert.match(api.output(), /planted/);
      gateway.apis.splice(0);
      await worker.stop();
      gateway.workers.splice(0);
    });

    it(`a worker with an unhandled ${how} completes its jobs, counts the fault, and exits with 1`, async () => {
      const api = await gateway.startApi();
      const port = await freePort();
      const worker = await gateway.startWorker({ ...failing(how), WORKER_PORT: String(port) });
      const streams = await Promise.all(Array.from({ length: 5 }, () => beginStream(gateway)));
      const exited = exitCode(worker);
      worker.child.kill('SIGUSR2');
      // The signal is handled when the worker comes to it, which may be after a scrape: it counts, and runs for two seconds.
      await eventually(async () => {
        const numbers = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
        assert.match(numbers, /^sluice_faults_total\{kind="[a-z_]+",role="worker"\} 1$/m);
      });
      await assertWhole(streams);
      assert.equal(await exited, 1);
      assert.match(worker.output(), /planted/);
      gateway.workers.splice(0);
      await api.stop();
      gateway.apis.splice(0);
    });
  }
});

describe('processes whose Redis is away', () => {
  let gateway: TestGateway;
  before(async () => {
    gateway = await TestGateway.start({ apis: 0, workers: 0, settings: { SLUICE_SHUTDOWN_SECONDS: '10' } });
  });
  after(() => gateway.stop());

  it('an idle api, worker and ledger end after SIGTERM: no step of closing waits for Redis without end', async () => {
    const processes = [
      await gateway.startApi({ SLUICE_LEDGER: 'off' }),
      await gateway.startLedger(),
      await gateway.startWorker(),
    ];
    await wordsOf(await beginStream(gateway));
    await gateway.redis?.kill();
    // Each looks at Redis every 5 s, and says nothing of a look that is under way.
    await delay(6000);
    // 1 where the time to close has run out.
    assert.deepEqual(await Promise.all(processes.map((process) => process.stop())), [0, 0, 0]);
  });
});
