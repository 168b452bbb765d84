import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { freePort } from './free-port.ts';

const readyDeadlineMs = 15_000;

export interface TestRedisOptions {
  /** Append-only file with `appendfsync always`, so that a killed server comes back with all it had confirmed. */
  aof?: boolean;
  /** Further arguments of redis-server, such as `['--maxmemory', '64mb']`. */
  args?: string[];
}

/** A redis-server of a test suite's own: 127.0.0.1, a free port, a folder of its own, `noeviction`, no snapshots. */
export interface TestRedis {
  readonly url: string;
  readonly port: number;
  /** The running server's process id; `restart` changes it. */
  readonly pid: number;
  /** Its working folder; removed by `stop`. */
  readonly dir: string;
  /** Ends the server and removes its folder. */
  stop(): Promise<void>;
  /** SIGKILL: the server is gone without a word; `restart` or `stop` may follow. */
  kill(): Promise<void>;
  /** Starts it again on the same port and folder; one that still runs is ended first. */
  restart(): Promise<void>;
}

const running = new Set<ChildProcess>();
// Last resort, should a suite fail before its own `stop`: no server outlives its test process.
process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL');
});

/** Starts a real redis-server child and waits until it answers. @throws when it does not within 15 seconds. */
export async function startRedis(options: TestRedisOptions = {}): Promise<TestRedis> {
  const dir = await mkdtemp(join(tmpdir(), 'sluice-test-redis-'));
  const persistence = options.aof ? ['--appendonly', 'yes', '--appendfsync', 'always'] : ['--appendonly', 'no'];
  const argumentsFor = (port: number): string[] => [
    ...['--port', String(port), '--bind', '127.0.0.1', '--dir', dir, '--save', '', '--loglevel', 'warning'],
    ...['--maxmemory-policy', 'noeviction', ...persistence, ...(options.args ?? [])],
  ];
  const port = await freePort();
  let current: ChildProcess;
  try {
    current = await launch(argumentsFor(port), port);
  } catch (error) {
    await rm(dir, { recursive: true, force: true });
    throw error;
  }
  return {
    url: `redis://127.0.0.1:${port}`,
    port,
    dir,
    get pid() {
      return current.pid as number;
    },
    stop: async () => {
      await end(current, 'SIGTERM');
      await rm(dir, { recursive: true, force: true });
    },
    kill: () => end(current, 'SIGKILL'),
    restart: async () => {
      await end(current, 'SIGTERM');
      current = await launch(argumentsFor(port), port);
    },
  };
}

async function launch(args: string[], port: number): Promise<ChildProcess> {
  const child = spawn('redis-server', args, { stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  const keep = (chunk: Buffer): void => {
    output = (output + chunk.toString()).slice(-4000);
  };
  child.stdout.on('data', keep);
  child.stderr.on('data', keep);
  let failure: Error | undefined;
  child.on('error', (error) => {
    failure = error;
  });
  running.add(child);
  child.on('exit', () => running.delete(child));
  // A suite that fails before its own `stop` ends all the same, and the server with it.
  for (const handle of [child, child.stdout as Socket, child.stderr as Socket]) handle.unref();
  const deadline = Date.now() + readyDeadlineMs;
  while (!(await answers(port))) {
    if (failure !== undefined) throw failure;
    if (hasEnded(child) || Date.now() > deadline) {
      await end(child, 'SIGKILL');
      throw new Error(`redis-server did not start: ${output}`);
    }
    await delay(20);
  }
  // Another server may have answered in this one's place.
  if (hasEnded(child)) throw new Error(`redis-server ended at once: ${output}`);
  return child;
}

/** Whether a server takes commands: it does not while it loads its append-only file, and it does when it asks for a password. */
function answers(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1', timeout: 1000 });
    const settle = (ready: boolean): void => {
      socket.destroy();
      resolve(ready);
    };
    socket.on('connect', () => socket.write('PING\r\n'));
    socket.on('data', (reply) => settle(/^(\+PONG|-NOAUTH)/.test(reply.toString())));
    socket.on('error', () => settle(false));
    socket.on('timeout', () => settle(false));
  });
}

function hasEnded(child: ChildProcess): boolean {
  return child.exitCode !== null || child.signalCode !== null;
}

async function end(child: ChildProcess, signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
  if (hasEnded(child)) return;
  const exit = once(child, 'exit');
  child.ref();
  child.kill(signal);
  // A server that was stopped (SIGSTOP) or is stuck does not react to SIGTERM.
  const force = setTimeout(() => child.kill('SIGKILL'), 5000);
  await exit;
  clearTimeout(force);
}
