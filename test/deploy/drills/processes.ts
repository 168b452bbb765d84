import { spawn } from 'node:child_process';
import { cpSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { eventually } from '../../support/eventually.ts';
import { freePort } from '../../support/free-port.ts';
import { builtProduct, type GatewayProcess } from '../../support/gateway.ts';
import type { Drill, Stage } from './stage.ts';

/** The port of metrics of the process that a fault is about. */
const ports = new WeakMap<Stage, string>();

const killedApi: Drill = {
  fault: 'an api is killed, and nothing starts it again',
  alerts: ['SluiceProcessDown'],
  open: async (stage) => {
    await stage.openGateway();
    await stage.startApi();
    ports.set(stage, await stage.target('api'));
    await stage.gateway.startApi({ METRICS_PORT: ports.get(stage) as string });
  },
  begin: async (stage) => {
    await stage.gateway.apis[1]?.kill();
  },
  end: async (stage) => {
    await stage.gateway.startApi({ METRICS_PORT: ports.get(stage) as string });
  },
};

const noApi: Drill = {
  fault: 'the last api is killed',
  alerts: ['SluiceNoApi'],
  open: async (stage) => {
    await stage.openGateway();
    ports.set(stage, await stage.target('api'));
    await stage.gateway.startApi({ METRICS_PORT: ports.get(stage) as string });
    await stage.startWorker();
  },
  begin: async (stage) => {
    await stage.gateway.apis[0]?.kill();
  },
  end: async (stage) => {
    await stage.gateway.startApi({ METRICS_PORT: ports.get(stage) as string });
  },
};

const restartingWorker: Drill = {
  fault: 'a worker ends and is started again every 17 s',
  alerts: ['SluiceRestarting'],
  open: async (stage) => {
    await stage.openGateway();
    await stage.startApi();
    const port = await stage.target('worker');
    ports.set(stage, port);
    await stage.gateway.startWorker({ WORKER_PORT: port });
  },
  begin: async (stage) => {
    const port = ports.get(stage) as string;
    let worker: GatewayProcess | undefined = stage.gateway.workers[0];
    for (let restarts = 0; restarts < 4; restarts++) {
      await worker?.stop();
      worker = await stage.gateway.startWorker({ WORKER_PORT: port });
      // Each of its lives must be scraped.
      await delay(17_000, undefined, { signal: stage.signal }).catch(() => undefined);
    }
  },
};

const blockedLoop: Drill = {
  fault: 'a worker is kept from running for 700 ms of each second',
  alerts: ['SluiceEventLoopBlocked'],
  open: async (stage) => {
    await stage.openGateway();
    await stage.startApi();
    await stage.startWorker();
  },
  begin: async (stage) => {
    const { child } = stage.gateway.workers[0] as GatewayProcess;
    stage.use(() => child.kill('SIGCONT'));
    stage.repeat(1, async () => {
      child.kill('SIGSTOP');
      await delay(700);
      child.kill('SIGCONT');
    });
  },
  end: async (stage) => {
    stage.gateway.workers[0]?.child.kill('SIGCONT');
  },
};

/** Starts an api that may open few files only, as `ulimit -n` has it. */
async function startLimitedApi(stage: Stage): Promise<number> {
  const port = await freePort();
  const settings = { PORT: String(port), METRICS_PORT: await stage.target('api') };
  const program = [process.execPath, join(builtProduct, 'api/main.js')];
  const child = spawn('prlimit', ['--nofile=200:200', ...program], {
    ...{ env: stage.gateway.settings(settings), stdio: 'ignore' },
  });
  stage.use(() => child.kill('SIGKILL'));
  await eventually(async () => {
    const { status } = await fetch(`http://127.0.0.1:${port}/healthz`);
    if (status !== 200) throw new Error(`the api is not there: ${status}`);
  }, 60_000);
  return port;
}

const limited = new WeakMap<Stage, number>();
const idle = new WeakMap<Stage, readonly Socket[]>();

const fewDescriptors: Drill = {
  fault: 'idle connections take most of the file descriptors of an api',
  alerts: ['SluiceFileDescriptors'],
  open: async (stage) => {
    await stage.openGateway();
    limited.set(stage, await startLimitedApi(stage));
    await stage.startWorker();
  },
  begin: async (stage) => {
    const port = limited.get(stage) as number;
    const open = (): Socket => {
      const socket = connect(port, '127.0.0.1');
      socket.on('error', () => undefined);
      stage.use(() => socket.destroy());
      return socket;
    };
    let sockets = Array.from({ length: 150 }, open);
    // The api ends idle connections: others take their place.
    stage.repeat(2, async () => {
      const alive = sockets.filter(({ destroyed, readyState }) => !destroyed && readyState !== 'closed');
      sockets = [...alive, ...Array.from({ length: 150 - alive.length }, open)];
      idle.set(stage, sockets);
    });
  },
  end: async (stage) => {
    for (const socket of idle.get(stage) ?? []) socket.destroy();
  },
};

/** Loaded into an api: the file system reports another free space from the message `disk_low` to `disk_free`. */
const lowDisk = `
import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
const real = fs.promises.statfs;
let isLow = false;
fs.promises.statfs = async (...given) => {
  const found = await real(...given);
  return isLow ? { bavail: 1_000, bsize: 1_000_000 } : found;
};
syncBuiltinESMExports();
process.on('message', (message) => { if (/^disk_/.test(message)) isLow = message === 'disk_low'; });
`;

const fullDisk: Drill = {
  fault: 'an api is told that 1 GB is free on the disk of its data folder',
  alerts: ['SluiceDiskLow'],
  open: async (stage) => {
    await stage.openGateway();
    await stage.startApi({ NODE_OPTIONS: `--import data:text/javascript,${encodeURIComponent(lowDisk)}` });
    await stage.startWorker();
  },
  begin: async (stage) => {
    stage.gateway.apis[0]?.child.send('disk_low');
  },
  end: async (stage) => {
    stage.gateway.apis[0]?.child.send('disk_free');
  },
};

/** A copy of the build that is of another version. */
function otherVersion(stage: Stage): string {
  const parent = mkdtempSync(join(tmpdir(), 'sluice-test-version-'));
  stage.use(() => rmSync(parent, { recursive: true, force: true }));
  const project = fileURLToPath(new URL('../../../', import.meta.url));
  cpSync(builtProduct, join(parent, 'dist'), { recursive: true });
  symlinkSync(join(project, 'node_modules'), join(parent, 'node_modules'));
  writeFileSync(join(parent, 'package.json'), JSON.stringify({ version: '0.0.1', type: 'module' }));
  return join(parent, 'dist');
}

const mixedVersions: Drill = {
  fault: 'a worker of another version runs beside the others',
  alerts: ['SluiceMixedVersions'],
  open: async (stage) => {
    await stage.openGateway();
    await stage.startApi();
    await stage.startWorker();
    ports.set(stage, await stage.target('worker'));
  },
  begin: async (stage) => {
    stage.gateway.product = otherVersion(stage);
    await stage.gateway.startWorker({ WORKER_PORT: ports.get(stage) as string });
  },
  end: async (stage) => {
    await stage.gateway.workers.at(-1)?.stop();
  },
};

/** Faults of processes and their machine. */
export const processDrills: readonly Drill[] = [
  killedApi,
  noApi,
  restartingWorker,
  blockedLoop,
  fewDescriptors,
  fullDisk,
  mixedVersions,
];
