import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { type ConnectionOptions, connect as connectTls } from 'node:tls';
import { freePort } from './free-port.ts';

const readyDeadlineMs = 60_000;

export interface TestRedisOptions {
  /** Append-only file with `appendfsync always`, so that a killed server comes back with all it had confirmed. */
  aof?: boolean;
  /** Further arguments of redis-server, such as `['--maxmemory', '64mb']`. */
  args?: string[];
  /** It speaks TLS only, with these PEM files. */
  tls?: ServerTls;
  /** Another program than `redis-server`. */
  program?: string | undefined;
}

/** PEM files of a server. It accepts only clients that show a certificate of the authority, if it `asksForCertificate`. */
export interface ServerTls {
  readonly ca: string;
  readonly cert: string;
  readonly key: string;
  readonly asksForCertificate?: boolean;
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

/** Starts a real redis-server child and waits until it answers. @throws when it does not within a minute. */
export async function startRedis(options: TestRedisOptions = {}): Promise<TestRedis> {
  const dir = await mkdtemp(join(tmpdir(), 'sluice-test-redis-'));
  const persistence = options.aof ? ['--appendonly', 'yes', '--appendfsync', 'always'] : ['--appendonly', 'no'];
  const argumentsFor = (port: number): string[] => [
    ...portArguments(port, options.tls),
    ...['--bind', '127.0.0.1', '--dir', dir, '--save', '', '--loglevel', 'warning'],
    ...['--maxmemory-policy', 'noeviction', ...persistence, ...(options.args ?? [])],
  ];
  const port = await freePort();
  let current: ChildProcess;
  try {
    current = await launchServer({ ...options, args: argumentsFor(port), port });
  } catch (error) {
    await rm(dir, { recursive: true, force: true });
    throw error;
  }
  return {
    url: `${options.tls === undefined ? 'redis' : 'rediss'}://127.0.0.1:${port}`,
    port,
    dir,
    get pid() {
      return current.pid as number;
    },
    stop: async () => {
      await endServer(current, 'SIGTERM');
      await rm(dir, { recursive: true, force: true });
    },
    kill: () => endServer(current, 'SIGKILL'),
    restart: async () => {
      await endServer(current, 'SIGTERM');
      current = await launchServer({ ...options, args: argumentsFor(port), port });
    },
  };
}

/** Arguments by which a server listens on a port. */
export function portArguments(port: number, tls: ServerTls | undefined): string[] {
  if (tls === undefined) return ['--port', String(port)];
  return [
    ...['--port', '0', '--tls-port', String(port), '--tls-replication', 'yes'],
    ...['--tls-ca-cert-file', tls.ca, '--tls-cert-file', tls.cert, '--tls-key-file', tls.key],
    ...['--tls-auth-clients', tls.asksForCertificate === true ? 'yes' : 'no'],
  ];
}

interface ServerProcess extends Pick<TestRedisOptions, 'tls' | 'program'> {
  readonly args: readonly string[];
  readonly port: number;
}

/** Starts a server and waits until it answers on its port of 127.0.0.1. @throws when it does not within a minute. */
export async function launchServer(server: ServerProcess): Promise<ChildProcess> {
  const child = spawn(server.program ?? 'redis-server', server.args, { stdio: ['ignore', 'pipe', 'pipe'] });
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
  while (!(await answers(server))) {
    if (failure !== undefined) throw failure;
    if (hasEnded(child) || Date.now() > deadline) {
      await endServer(child, 'SIGKILL');
      throw new Error(`redis-server did not start: ${output}`);
    }
    await delay(20);
  }
  // Another server may have answered in this one's place.
  if (hasEnded(child)) throw new Error(`redis-server ended at once: ${output}`);
  return child;
}

/** Whether a server takes commands: it does not while it loads its append-only file, and it does when it asks for a password. */
function answers({ port, tls }: ServerProcess): Promise<boolean> {
  return new Promise((resolve) => {
    const address = { port, host: '127.0.0.1', timeout: 1000 };
    const socket = tls === undefined ? connect(address) : connectTls({ ...address, ...adminTls(tls) });
    const settle = (ready: boolean): void => {
      socket.destroy();
      resolve(ready);
    };
    socket.on(tls === undefined ? 'connect' : 'secureConnect', () => socket.write('PING\r\n'));
    socket.on('data', (reply) => settle(/^(\+PONG|-NOAUTH)/.test(reply.toString())));
    socket.on('error', () => settle(false));
    socket.on('timeout', () => settle(false));
  });
}

/** Options of a test's own connection, past what is tested: any name will do, and the server's certificate serves as the client's. */
export function adminTls({ ca, cert, key }: ServerTls): ConnectionOptions {
  const read = (file: string): string => readFileSync(file, 'utf8');
  return { ca: read(ca), cert: read(cert), key: read(key), checkServerIdentity: () => undefined };
}

function hasEnded(child: ChildProcess): boolean {
  return child.exitCode !== null || child.signalCode !== null;
}

/** Ends a server of `launchServer`. */
export async function endServer(child: ChildProcess, signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
  if (hasEnded(child)) return;
  const exit = once(child, 'exit');
  child.ref();
  child.kill(signal);
  // A server that was stopped (SIGSTOP) or is stuck does not react to SIGTERM.
  const force = setTimeout(() => child.kill('SIGKILL'), 5000);
  await exit;
  clearTimeout(force);
}
