import { type ChildProcess, fork, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdir } from 'node:fs/promises';
import { createServer } from 'node:net';
import { totalmem } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { Redis } from 'ioredis';
import { ConfigError } from '../shared/config/config.ts';
import { openOnce } from '../shared/redis/open-redis.ts';
import { parseRedisUrl } from '../shared/redis/redis-address.ts';
import { childOptions, endChild, hasEnded, watchChild } from './child-process.ts';
import type { ListeningMessage, StartMessage } from './in-memory-redis.ts';
import { readRedisAddress, removeRedisAddress, writeRedisAddress } from './redis-address.ts';

const serverPrograms = ['redis-server', 'valkey-server'];
/** A large append-only file takes time to load. */
const readyDeadlineMs = 60_000;
/** Within this time the Redis of an earlier start must end. */
const leftoverDeadlineMs = 10_000;
const portAttempts = 5;
/** Its share of the memory of the machine or its container: saving may double the use. */
const memoryShare = 0.25;
const minMemory = 256 * 1024 * 1024;

/** A Redis on this machine (127.0.0.1 and a socket), with a random password per start. */
export interface EmbeddedRedis {
  readonly url: string;
  readonly pid: number;
  /** Whether its data is persisted: false for the in-memory one. */
  readonly durable: boolean;
  /** Name of the running program, for messages. */
  readonly program: string;
  /** Resolves when the process has ended, for any reason. */
  readonly ended: Promise<void>;
  /** Lets it write its data, then ends it; after the deadline it is killed. */
  stop(deadlineMs: number): Promise<void>;
}

/**
 * Starts `redis-server` or `valkey-server` from the PATH with its append-only file in the data folder; without either, an
 * in-memory Redis. While it runs, its address is in the data folder. The caller holds the data folder's lock.
 * @param maxMemory in redis.conf syntax
 * @throws ConfigError when it does not respond within a minute.
 */
export async function startEmbeddedRedis(dataDir: string, maxMemory = defaultMaxMemory()): Promise<EmbeddedRedis> {
  await endLeftover(dataDir);
  const password = randomBytes(24).toString('hex');
  for (const program of serverPrograms) {
    const redis = await startServer(program, dataDir, { password, maxMemory });
    if (redis !== undefined) return redis;
  }
  return await startInMemory(dataDir, password);
}

function defaultMaxMemory(): string {
  // 0, or more than the machine has, means no limit.
  const allowed = process.constrainedMemory() || totalmem();
  return String(Math.max(minMemory, Math.floor(Math.min(allowed, totalmem()) * memoryShare)));
}

/**
 * A killed launcher leaves its redis-server behind, and two must never write the same file.
 * @throws ConfigError when it does not end, or does not answer: then it may still write.
 */
async function endLeftover(dataDir: string): Promise<void> {
  const address = readRedisAddress(dataDir);
  if (address === undefined) return;
  const giveUpAt = Date.now() + leftoverDeadlineMs;
  let isAsked = false;
  while (readRedisAddress(dataDir) !== undefined) {
    if (!isAsked) {
      const answer = await askToEnd(address.url);
      if (answer === 'not_ours') return;
      isAsked = answer === 'asked';
    }
    if (Date.now() > giveUpAt) {
      throw new ConfigError(`The Redis of an earlier start (process ${address.pid}) does not end: end it yourself.`);
    }
    await delay(50);
  }
}

/**
 * Asks a leftover Redis to end. The password proves that it is ours and not another process with a reused process id. One that is
 * loading its data can end, too; one that does not answer for now is asked again.
 */
async function askToEnd(url: string): Promise<'asked' | 'not_ours' | 'silent'> {
  const redis = openConnection(url);
  let failure: unknown;
  redis.on('error', (error) => {
    failure ??= error;
  });
  try {
    await redis.connect();
    const isLoading = await redis.ping().then(
      () => false,
      (error: Error) => {
        failure ??= error;
        return error.message.startsWith('LOADING');
      },
    );
    if (failure !== undefined && !isLoading) return isSilence(failure) ? 'silent' : 'not_ours';
    await Promise.race([redis.shutdown().catch(() => undefined), delay(1000)]);
    return 'asked';
  } catch (error) {
    return isSilence(failure ?? error) ? 'silent' : 'not_ours';
  } finally {
    redis.disconnect();
  }
}

/** Whether something listens, and is only busy. */
function isSilence(failure: unknown): boolean {
  return /^BUSY|timed? ?out/i.test((failure as Error).message);
}

async function startServer(
  program: string,
  dataDir: string,
  { password, maxMemory }: { readonly password: string; readonly maxMemory: string },
): Promise<EmbeddedRedis | undefined> {
  const dir = join(dataDir, 'redis');
  await mkdir(dir, { recursive: true, mode: 0o700 });
  let output = '';
  // Another process may take the port between choosing it and the server's bind: then choose again.
  for (let attempt = 1; attempt <= portAttempts; attempt++) {
    const port = await freePort();
    const child = spawn(program, ['-'], { ...childOptions, stdio: ['pipe', 'pipe', 'pipe'] });
    if (!(await hasSpawned(child))) return undefined;
    watchChild(child);
    output = '';
    const keep = (chunk: Buffer): void => {
      output = (output + chunk.toString()).slice(-4000);
    };
    child.stdout.on('data', keep);
    child.stderr.on('data', keep);
    child.stdin.on('error', () => {});
    child.stdin.end(serverSettings(port, dir, { password, maxMemory }));
    const redis = embedded(child, { dataDir, url: serverUrl(port, dir, password), program, durable: true });
    await writeRedisAddress(dataDir, redis);
    if (await answers(child, redis.url)) return redis;
    await redis.stop(1000);
    if (!/address already in use/i.test(output)) break;
  }
  const lastLine = output.trim().split('\n').at(-1) ?? '';
  throw new ConfigError(`The embedded Redis (${program}) did not start: ${lastLine || 'it said nothing'}.`);
}

const socketOf = (dir: string): string => join(dir, 'redis.sock');

/** Its socket, which uses less CPU than a port, unless the path exceeds the smallest limit among systems. */
function serverUrl(port: number, dir: string, password: string): string {
  const socket = socketOf(dir);
  return isSocketPath(socket) ? `${socket}?password=${password}` : `redis://:${password}@127.0.0.1:${port}`;
}

function isSocketPath(path: string): boolean {
  return Buffer.byteLength(path) < 104 && !path.includes('?');
}

/** Passed on stdin: an argument would show the password to every user of this machine. */
function serverSettings(
  port: number,
  dir: string,
  { password, maxMemory }: { readonly password: string; readonly maxMemory: string },
): string {
  const quoted = (path: string): string => `"${path.replace(/[\\"]/g, '\\$&')}"`;
  return [
    `port ${port}`,
    'bind 127.0.0.1',
    ...(isSocketPath(socketOf(dir)) ? [`unixsocket ${quoted(socketOf(dir))}`, 'unixsocketperm 700'] : []),
    `requirepass ${password}`,
    `dir ${quoted(dir)}`,
    'appendonly yes',
    'appendfsync everysec',
    // It grows fast with data that lives for seconds: at the default of 64 MB it would be rewritten all the time.
    'auto-aof-rewrite-min-size 256mb',
    // A job's hashes have few but long fields: as listpacks they take less memory, and less time to allocate and free. By its old
    // name, which later versions know, too: one before 7.0 does not start with the new one.
    'hash-max-ziplist-value 4096',
    'save ""',
    'maxmemory-policy noeviction',
    `maxmemory ${maxMemory}`,
    'loglevel warning',
    '',
  ].join('\n');
}

async function startInMemory(dataDir: string, password: string): Promise<EmbeddedRedis> {
  const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js';
  const file = fileURLToPath(new URL(`./in-memory-redis.${extension}`, import.meta.url));
  const child = fork(file, { ...childOptions, stdio: ['ignore', 'ignore', 'inherit', 'ipc'] });
  watchChild(child);
  child.send({ type: 'start', password } satisfies StartMessage);
  const ended = once(child, 'exit').then(() => undefined);
  const listening = once(child, 'message').then(([message]) => message as ListeningMessage);
  const message = await Promise.race([listening, ended, delay(readyDeadlineMs, undefined, { ref: false })]);
  if (message === undefined) {
    await endChild(child, 0);
    throw new ConfigError('No redis-server or valkey-server is on the PATH, and the one in memory did not start.');
  }
  const program = 'js-redis-server, in memory';
  const redis = embedded(child, {
    dataDir,
    url: `redis://:${password}@127.0.0.1:${message.port}`,
    program,
    durable: false,
  });
  await writeRedisAddress(dataDir, redis);
  return redis;
}

function embedded(
  child: ChildProcess,
  options: { dataDir: string; url: string; program: string; durable: boolean },
): EmbeddedRedis {
  const { dataDir, url, program, durable } = options;
  return {
    url,
    pid: child.pid as number,
    program,
    durable,
    ended: once(child, 'exit').then(() => undefined),
    stop: async (deadlineMs) => {
      await endChild(child, deadlineMs);
      await removeRedisAddress(dataDir);
    },
  };
}

/** Whether the program exists and was started. */
async function hasSpawned(child: ChildProcess): Promise<boolean> {
  return await new Promise((resolve, reject) => {
    child.once('spawn', () => resolve(true));
    child.once('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') resolve(false);
      else reject(new ConfigError(`The embedded Redis cannot be run: ${error.message}.`));
    });
  });
}

async function answers(child: ChildProcess, url: string): Promise<boolean> {
  const giveUpAt = Date.now() + readyDeadlineMs;
  while (!hasEnded(child) && Date.now() < giveUpAt) {
    const redis = openConnection(url);
    try {
      await redis.connect();
      await redis.ping();
      return true;
    } catch {
      await delay(30);
    } finally {
      redis.disconnect();
    }
  }
  return false;
}

function openConnection(url: string): Redis {
  const options = { enableReadyCheck: false, connectTimeout: 2000, socketTimeout: 5000 };
  const redis = openOnce({ address: parseRedisUrl(url), tls: () => ({}) }, options);
  redis.on('error', () => {});
  return redis;
}

async function freePort(): Promise<number> {
  const server = createServer();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  await once(server, 'close');
  if (address === null || typeof address === 'string') throw new Error('no port');
  return address.port;
}
