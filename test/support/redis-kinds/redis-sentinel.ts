import type { ChildProcess } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { eventually } from '../eventually.ts';
import { freePort } from '../free-port.ts';
import {
  adminTls,
  endServer,
  launchServer,
  portArguments,
  type ServerTls,
  startRedis,
  type TestRedis,
} from '../redis.ts';

const masterName = 'main';
/** A user of the Sentinels with the rights that the documentation gives it, and any password. */
export const sentinelUser = 'asker';
const page = new URL('../../../docs/guides/redis-services.md', import.meta.url);
const sentinelRights = /\+sentinel\|\S+ \+sentinel\|[\w-]+/.exec(readFileSync(page, 'utf8'))?.[0] ?? '';

export interface TestSentinelOptions {
  readonly sentinels: number;
  readonly tls?: ServerTls;
  /** Password of master and replica. */
  readonly password?: string;
  /** Password of the Sentinels themselves. */
  readonly sentinelPassword?: string;
  /** Keep each server's data on disk. */
  readonly aof?: boolean;
  /** Another program than `redis-server`. */
  readonly program?: string | undefined;
}

/** A master, its replica and Sentinels of a test suite's own. */
export interface TestSentinel {
  /** What `REDIS_URL` takes, without passwords. */
  readonly url: string;
  /** Of the Sentinels: `127.0.0.1:port,…`. */
  readonly hosts: string;
  /** The first master, and the first replica. */
  readonly servers: readonly [TestRedis, TestRedis];
  /** The port of the master as the first Sentinel sees it. */
  masterPort(): Promise<number>;
  /** Has the Sentinels make the replica the master. */
  failover(): Promise<void>;
  stop(): Promise<void>;
}

/** Starts them, and waits until a failover would succeed. */
export async function startSentinel(options: TestSentinelOptions): Promise<TestSentinel> {
  const { password, tls } = options;
  const login = password === undefined ? [] : ['--requirepass', password, '--masterauth', password];
  const server = (more: readonly string[]): Promise<TestRedis> =>
    startRedis({
      args: [...login, '--repl-diskless-sync-delay', '0', ...more],
      aof: options.aof ?? false,
      program: options.program,
      ...(tls !== undefined && { tls }),
    });
  const dir = await mkdtemp(join(tmpdir(), 'sluice-test-sentinel-'));
  const children: ChildProcess[] = [];
  const servers: TestRedis[] = [];
  const stop = async (): Promise<void> => {
    await Promise.all(children.map((child) => endServer(child, 'SIGKILL')));
    await Promise.all(servers.map((one) => one.stop()));
    await rm(dir, { recursive: true, force: true });
  };
  try {
    const master = await server([]);
    servers.push(master);
    const replica = await server(['--replicaof', '127.0.0.1', String(master.port)]);
    servers.push(replica);
    await isInStep(replica, options);
    const ports = await Promise.all(Array.from({ length: options.sentinels }, () => freePort()));
    for (const port of ports) children.push(await startOne(dir, port, master.port, options));
    const first = sentinelClient(ports[0] as number, options);
    try {
      await eventually(() => assertReady(first, options.sentinels), 30_000);
    } finally {
      first.disconnect();
    }
    const hosts = ports.map((port) => `127.0.0.1:${port}`).join(',');
    return {
      url: `${tls === undefined ? 'redis' : 'rediss'}+sentinel://${hosts}/${masterName}`,
      hosts,
      servers: [master, replica],
      masterPort: async () => {
        const address = await ask(ports[0] as number, options, 'GET-MASTER-ADDR-BY-NAME');
        return Number((address as string[])[1]);
      },
      failover: async () => {
        await ask(ports[0] as number, options, 'FAILOVER');
      },
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function startOne(
  dir: string,
  port: number,
  masterPort: number,
  { sentinels, tls, password, sentinelPassword, program }: TestSentinelOptions,
): Promise<ChildProcess> {
  const quorum = Math.floor(sentinels / 2) + 1;
  const lines = [
    `sentinel monitor ${masterName} 127.0.0.1 ${masterPort} ${quorum}`,
    `sentinel down-after-milliseconds ${masterName} 1000`,
    `sentinel failover-timeout ${masterName} 5000`,
    ...(password === undefined ? [] : [`sentinel auth-pass ${masterName} ${password}`]),
    ...(sentinelPassword === undefined
      ? []
      : [`requirepass ${sentinelPassword}`, `sentinel sentinel-pass ${sentinelPassword}`]),
    `user ${sentinelUser} on nopass ${sentinelRights}`,
  ];
  const file = join(dir, `sentinel-${port}.conf`);
  // It writes its own state into this file.
  await writeFile(file, `${lines.join('\n')}\n`);
  const args = [file, '--sentinel', ...portArguments(port, tls), '--bind', '127.0.0.1', '--dir', dir];
  return await launchServer({ args, port, program, ...(tls !== undefined && { tls }) });
}

/** A Sentinel asks for replicas when it starts, and then only every ten seconds. */
async function isInStep(replica: TestRedis, { tls, password }: TestSentinelOptions): Promise<void> {
  const client = new Redis(replica.url, {
    ...(password !== undefined && { password }),
    ...(tls !== undefined && { tls: adminTls(tls) }),
  });
  try {
    await eventually(async () => {
      if (!/^master_link_status:up/m.test(await client.info('replication')))
        throw new Error('the replica is not in step');
    }, 30_000);
  } finally {
    client.disconnect();
  }
}

async function ask(port: number, options: TestSentinelOptions, command: string): Promise<unknown> {
  const client = sentinelClient(port, options);
  try {
    return await client.call('SENTINEL', command, masterName);
  } finally {
    client.disconnect();
  }
}

function sentinelClient(port: number, { tls, sentinelPassword }: TestSentinelOptions): Redis {
  return new Redis({
    port,
    host: '127.0.0.1',
    ...(sentinelPassword !== undefined && { password: sentinelPassword }),
    ...(tls !== undefined && { tls: adminTls(tls) }),
  });
}

/** A failover needs a replica that is known and in step, and the other Sentinels' votes. */
async function assertReady(client: Redis, sentinels: number): Promise<void> {
  const master = fieldsOf((await client.call('SENTINEL', 'MASTER', masterName)) as string[]);
  if (master.get('num-other-sentinels') !== String(sentinels - 1)) throw new Error('the Sentinels are still apart');
  const replicas = (await client.call('SENTINEL', 'REPLICAS', masterName)) as string[][];
  const replica = fieldsOf(replicas[0] ?? []);
  if (replica.get('master-link-status') !== 'ok') throw new Error('the replica is not in step');
}

function fieldsOf(list: readonly string[]): Map<string, string> {
  return new Map(list.flatMap((name, index) => (index % 2 === 0 ? [[name, list[index + 1] ?? '']] : [])));
}
