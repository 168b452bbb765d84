import { existsSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { productFlags } from '../../support/product-flags.ts';
import { benchChatRequest } from '../bench-requests.ts';
import { type Child, endChild, freePort, projectRoot, startChild, untilReady } from '../children.ts';
import type { Target, TargetKind, TargetOptions } from './target.ts';

/** Sluice of this checkout. */
export const sluice = sluiceOf('sluice', projectRoot, 'api, worker, Redis with AOF');

/**
 * Sluice as `npm start` runs it: an api process, a worker process and a real Redis with AOF, over its socket. Its caller has
 * every limit there is, and a balance.
 * @param root of a built checkout: this one, or one of another commit
 */
export function sluiceOf(
  name: string,
  root: string,
  description: string,
  settings: Record<string, string> = {},
): TargetKind {
  return { name, description, start: (options) => startSluice({ name, root, settings }, options) };
}

/** Sluice of this checkout with tracing on, of so large a share of the requests, and a collector that reads spans and keeps none. */
export function tracedSluice(share: number): TargetKind {
  const description = `Sluice that traces ${share * 100} % of the requests`;
  const start = async (options: TargetOptions): Promise<Target> => {
    const collector = createServer((request, response) => request.resume().once('end', () => response.end('{}')));
    await new Promise<void>((resolve) => collector.listen(0, '127.0.0.1', resolve));
    const settings = {
      OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${(collector.address() as AddressInfo).port}`,
      OTEL_TRACES_SAMPLER_ARG: String(share),
    };
    const target = await startSluice({ name: 'traced', root: projectRoot, settings }, options);
    const close = async (): Promise<void> => {
      await target.close();
      collector.closeAllConnections();
      collector.close();
    };
    return { ...target, close };
  };
  return { name: 'traced', description, start };
}

/** Sluice of this checkout with limits of its vendor that are far away: what all workers share to keep them. */
export const limitedSluice: TargetKind = {
  name: 'limited',
  description: 'Sluice with limits of its vendor',
  start: async (options) => {
    const file = join(options.directory, 'limits.yaml');
    await writeFile(file, 'vendors: { openai: { rpm: 9000000, tpm: 90000000000, max_parallel_requests: 100000 } }\n');
    return startSluice({ name: 'limited', root: projectRoot, settings: { SLUICE_CONFIG: file } }, options);
  },
};

interface Checkout {
  readonly name: string;
  readonly root: string;
  /** Over those of every checkout. */
  readonly settings: Record<string, string>;
}

async function startSluice({ name, root, settings }: Checkout, options: TargetOptions): Promise<Target> {
  const [apiFile, workerFile] = ['api', 'workers'].map((part) => join(root, 'dist', part, 'main.js')) as [
    string,
    string,
  ];
  for (const file of [apiFile, workerFile]) {
    if (!existsSync(file)) throw new Error(`${file} is missing (npm run build)`);
  }
  const started: Child[] = [];
  const close = async () => {
    // In this order: each drains while what it needs still runs.
    for (const child of started.reverse()) await endChild(child, 15_000);
  };
  try {
    const redis = await startRedis(options.directory);
    started.push(redis.child);
    const apiKey = await makeLimitedKey(root, join(options.directory, 'data'));
    const port = await freePort();
    const environment = { ...environmentOf(options, port, redis.socket), ...settings };
    const run = (role: string, ...args: string[]) => {
      const child = startChild(role, [process.execPath, ...profiling(role, port, options), ...args], {
        environment,
        logFile: join(options.directory, `${role}.log`),
      });
      started.push(child);
      return child;
    };
    const worker = run('worker', ...productFlags(root, 'worker'), workerFile, 'chat', 'embedding', 'image');
    const api = run('api', ...productFlags(root, 'api'), apiFile);
    const target = {
      name,
      origin: `http://127.0.0.1:${port}`,
      headers: { authorization: `Bearer ${apiKey}` },
      processes: [api, worker, redis.child],
      close,
    };
    await untilReady(api, 30_000, () => expectOk(fetch(`http://127.0.0.1:${port}/readyz`)));
    await untilReady(worker, 30_000, () =>
      expectOk(
        fetch(`${target.origin}/v1/chat/completions`, {
          method: 'POST',
          headers: { 'content-type': 'application/json', ...target.headers },
          body: JSON.stringify(benchChatRequest(false)),
          signal: AbortSignal.timeout(10_000),
        }),
      ),
    );
    return target;
  } catch (error) {
    await close();
    throw error;
  }
}

/** A key of a prepaid account, with limits for a minute, on tokens too, and with a budget: all are far away. */
async function makeLimitedKey(root: string, dataDir: string): Promise<string> {
  // That checkout's own: an older build refuses the database of a newer one.
  const load = (path: string) => import(pathToFileURL(join(root, path)).href);
  const { createApiKey }: typeof import('../../../shared/accounts/api-keys.ts') =
    // Where it was before folders went by subject.
    await load('shared/accounts/api-keys.ts').catch(() => load('shared/api-keys.ts'));
  const { openDatabase }: typeof import('../../../shared/database/database.ts') =
    await load('shared/database/database.ts');
  const db = await openDatabase({ dataDir, databaseUrl: undefined });
  const account = 'bench';
  const amount = 1_000_000_000_000_000;
  const credit = { id: 'credit_bench', account_id: account, amount, note: 'bench', created_by: 'bench' };
  await db.insertInto('accounts').values({ id: account, name: account, created_at: Date.now() }).execute();
  await db
    .insertInto('credits')
    .values({ ...credit, created_at: Date.now() })
    .execute();
  const limits = { rpm: 1e9, tpm: 1e12, budget: { amount, period: 'month' } } as const;
  const { key } = await createApiKey(db, { accountId: account, name: 'bench', ...limits });
  await db.destroy();
  return key;
}

function environmentOf(options: TargetOptions, port: number, redisSocket: string): Record<string, string> {
  return {
    PORT: String(port),
    HOST: '127.0.0.1',
    REDIS_URL: redisSocket,
    SLUICE_DATA_DIR: join(options.directory, 'data'),
    SLUICE_SANDBOX: 'off',
    OPENAI_API_KEY: 'bench',
    OPENAI_BASE_URL: `${options.vendorOrigin}/v1`,
    LOG_LEVEL: 'info',
    SLUICE_LAME_DUCK_SECONDS: '0',
    SLUICE_SHUTDOWN_SECONDS: '5',
    ...(options.concurrency ? { WORKER_CONCURRENCY_CHAT: String(options.concurrency) } : {}),
  };
}

function profiling(name: string, port: number, options: TargetOptions): string[] {
  if (!options.profileDirectory) return [];
  return ['--cpu-prof', `--cpu-prof-dir=${options.profileDirectory}`, `--cpu-prof-name=${name}-${port}.cpuprofile`];
}

async function expectOk(answering: Promise<Response>): Promise<void> {
  const answer = await answering;
  const text = await answer.text();
  if (!answer.ok) throw new Error(`status ${answer.status}: ${text.slice(0, 300)}`);
}

async function startRedis(directory: string): Promise<{ child: Child; socket: string }> {
  const data = join(directory, 'redis');
  const socket = join(data, 'redis.sock');
  await mkdir(data);
  const settings = {
    port: '0',
    unixsocket: socket,
    dir: data,
    save: '',
    appendonly: 'yes',
    appendfsync: 'everysec',
    'auto-aof-rewrite-min-size': '256mb',
    'hash-max-listpack-value': '4096',
    'maxmemory-policy': 'noeviction',
  };
  const args = Object.entries(settings).flatMap(([name, value]) => [`--${name}`, value]);
  const child = startChild('redis', ['redis-server', ...args], { logFile: join(directory, 'redis.log') });
  await untilReady(child, 10_000, () => ping(socket));
  return { child, socket };
}

function ping(path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = connect(path, () => socket.write('PING\r\n'));
    socket.setTimeout(1_000, () => socket.destroy(new Error('no answer')));
    socket.once('error', reject);
    socket.once('data', (bytes) => {
      socket.destroy();
      if (bytes.toString() === '+PONG\r\n') resolve();
      else reject(new Error(bytes.toString()));
    });
  });
}
