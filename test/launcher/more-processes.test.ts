import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { readProcessSettings } from '../../shared/config/process-settings.ts';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/free-port.ts';
import { isAlive, type LauncherProcess, startLauncher } from './launcher-process.ts';

const isFree = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });

/** A free port whose next one is free, too. */
async function freePair(): Promise<number> {
  for (;;) {
    const port = await freePort();
    if (await isFree(port + 1)) return port;
  }
}

const figures = async (port: number): Promise<string> => await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();

/** How many chats an api has answered. */
async function chatsOf(metricsPort: number): Promise<number> {
  const lines = (await figures(metricsPort)).split('\n').filter((line) => /^sluice_requests_total\{.*chat/.test(line));
  return lines.reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0);
}

/** Each request on a connection of its own. */
async function ask({ baseUrl, key }: { baseUrl: string; key: string }): Promise<number> {
  const answer = await fetch(`${baseUrl}/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', connection: 'close' },
    body: JSON.stringify({ model: 'sandbox-chat', messages: [{ role: 'user', content: 'Hello!' }] }),
  });
  await answer.arrayBuffer();
  return answer.status;
}

/** One after another: of connections that come together an api that is quicker takes more. */
async function askAll(welcome: { baseUrl: string; key: string }): Promise<number[]> {
  const statuses: number[] = [];
  while (statuses.length < 8) statuses.push(await ask(welcome));
  return statuses;
}

describe('several processes of each role', () => {
  let folder = '';
  let launcher: LauncherProcess | undefined;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'sluice-test-processes-'));
  });
  after(async () => {
    launcher?.signal('SIGTERM');
    await launcher?.exit;
    await rm(folder, { recursive: true, force: true });
  });

  test('two apis share one port and both answer, each role has metrics of its own, and a killed api is replaced while the other answers', async () => {
    const [metricsPort, workerPort] = [await freePair(), await freePair()];
    launcher = await startLauncher({
      dataDir: join(folder, 'data'),
      settings: {
        SLUICE_API_PROCESSES: '2',
        SLUICE_WORKER_PROCESSES: '2',
        METRICS_PORT: String(metricsPort),
        WORKER_PORT: String(workerPort),
      },
    });
    const welcome = await launcher.welcome();
    assert.match(launcher.output, /Processes +2 apis, 2 workers, sandbox/);
    assert.deepEqual(await askAll(welcome), Array(8).fill(200));
    const shares = [await chatsOf(metricsPort), await chatsOf(metricsPort + 1)] as const;
    assert.ok(Math.min(...shares) > 0, `one answers none: ${shares}`);
    assert.equal(shares[0] + shares[1], 8);
    // The launcher does not wait for workers.
    for (const port of [workerPort, workerPort + 1]) {
      await eventually(async () => assert.match(await figures(port), /^sluice_jobs_running/m), 30_000);
    }

    const children = launcher.children();
    assert.equal(Object.keys(children).filter((name) => /^(api|workers)/.test(name)).length, 4);
    process.kill(children['api 2'] as number, 'SIGKILL');
    await launcher.saidOnStderr(/The api process 2 ended unexpectedly \(SIGKILL\)/);
    assert.deepEqual(await askAll(welcome), Array(8).fill(200));
    await eventually(async () => assert.equal(await chatsOf(metricsPort + 1), 0, 'the killed api is back'), 30_000);
    assert.deepEqual(await askAll(welcome), Array(8).fill(200));
    assert.ok((await chatsOf(metricsPort + 1)) > 0);

    const pids = Object.values(launcher.children());
    launcher.signal('SIGINT');
    assert.equal(await launcher.exit, 0);
    assert.deepEqual(pids.filter(isAlive), []);
  });

  test('PORT is refused where the metrics of a further api would be', async () => {
    const port = await freePort();
    const settings = { PORT: String(port), METRICS_PORT: String(port - 1), SLUICE_API_PROCESSES: '2' };
    const refused = await startLauncher({ dataDir: join(folder, 'refused'), settings });
    assert.equal(await refused.exit, 1);
    assert.match(refused.errors, /METRICS_PORT \d+ is the first of the ports of 2 api processes/);
  });

  test('auto leaves a core to Redis, and a number is taken as it is', () => {
    const auto = (cores: number): readonly number[] => {
      const { apiProcesses, workerProcesses } = readProcessSettings(
        { SLUICE_API_PROCESSES: 'auto', SLUICE_WORKER_PROCESSES: 'auto' },
        cores,
      );
      return [apiProcesses, workerProcesses];
    };
    assert.deepEqual([1, 2, 4, 8, 64].map(auto), [
      [1, 1],
      [1, 1],
      [2, 1],
      [3, 2],
      [3, 2],
    ]);
    assert.deepEqual(readProcessSettings({ SLUICE_API_PROCESSES: 5, SLUICE_WORKER_PROCESSES: 6 }, 2), {
      apiProcesses: 5,
      workerProcesses: 6,
    });
  });
});
