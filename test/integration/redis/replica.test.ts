import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { describe, type TestContext, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { connectRedis } from '../../../shared/redis/redis.ts';
import { createLogger } from '../../../shared/runtime/log.ts';
import { held } from '../../support/chat-requests.ts';
import { eventually } from '../../support/eventually.ts';
import { linesOf, TestGateway } from '../../support/gateway.ts';
import { startRedis, type TestRedis } from '../../support/redis.ts';

const { log } = createLogger('silent', 'test');
const replicaMessage = 'Redis takes no writes (READONLY): is REDIS_URL a replica? It must name the master';
const queueMessage = 'a queue cannot be worked on for now';
/** How long Redis is a replica: many times the pause between connections. */
const replicaMs = 5000;
/** Connections a second, of an api and a worker together: each of their clients may make one. */
const maxConnections = 10;

async function startServer(t: TestContext): Promise<{ server: TestRedis; administrator: Redis }> {
  const server = await startRedis();
  t.after(() => server.stop());
  const administrator = new Redis(server.url);
  t.after(() => administrator.disconnect());
  return { server, administrator };
}

/** An address that leads elsewhere from now on, as a name does after a failover: connections that exist stay where they are. */
async function startAddress(t: TestContext, port: number): Promise<{ url: string; leadTo(port: number): void }> {
  let target = port;
  const sockets = new Set<Socket>();
  const server = createServer((client) => {
    const redis = connect(target, '127.0.0.1');
    for (const socket of [client, redis]) {
      sockets.add(socket);
      socket.on('error', () => undefined);
      socket.on('close', () => (socket === client ? redis : client).destroy());
    }
    client.pipe(redis).pipe(client);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const leadTo = (other: number): void => {
    target = other;
  };
  return { url: `redis://127.0.0.1:${(server.address() as AddressInfo).port}`, leadTo };
}

describe('a Redis that becomes a replica', { timeout: 120_000 }, () => {
  test('each process names it once, connects anew about once a second, and works again when it is a master', async (t) => {
    const { server, administrator } = await startServer(t);
    const gateway = await TestGateway.start({ redisUrl: server.url });
    t.after(() => gateway.stop());
    const connections = async () =>
      Number(/total_connections_received:(\d+)/.exec(await administrator.info('stats'))?.[1]);
    const before = await connections();
    // Of a master that does not exist: it keeps what it has.
    await administrator.replicaof('127.0.0.1', 1);
    await delay(replicaMs);
    const perSecond = ((await connections()) - before) / (replicaMs / 1000);
    await administrator.replicaof('NO', 'ONE');
    const backAt = Date.now();
    await eventually(async () => assert.equal((await fetch(`${gateway.url}/readyz`)).status, 200), 5000);
    t.diagnostic(`${perSecond} connections a second; ready after ${Date.now() - backAt} ms`);
    await gateway.client().chat.completions.create(held('Hi'));
    assert.ok(perSecond > 0 && perSecond <= maxConnections, `${perSecond} connections a second`);
    for (const process of [...gateway.apis, ...gateway.workers]) {
      await eventually(() => assert.equal(linesOf(process, replicaMessage).length, 1), 3000);
      assert.doesNotMatch(process.output(), /MaxListenersExceededWarning/);
    }
    for (const worker of gateway.workers) {
      const told = linesOf(worker, queueMessage).map((line) => String(line.err));
      assert.ok(told.length > 0);
      assert.deepEqual([...new Set(told)].sort(), told.sort());
    }
  });

  test('every connection of a process follows its address to the new master within two seconds', async (t) => {
    const old = await startServer(t);
    const successor = await startServer(t);
    const address = await startAddress(t, old.server.port);
    const handle = await connectRedis(address.url, log);
    t.after(() => handle.close());
    const blocking = handle.blocking() as Redis;
    // As BullMQ makes them.
    const copies = [1, 2, 3, 4].map(() => (handle.client as Redis).duplicate());
    const clients = [handle.client, blocking, ...copies];
    t.after(() => {
      for (const client of [blocking, ...copies]) client.disconnect();
    });
    for (const client of clients) await client.set('sluice:key', 'old');
    await old.administrator.replicaof('127.0.0.1', 1);
    const refused = await Promise.allSettled(clients.map((client) => client.set('sluice:key', 'refused')));
    assert.deepEqual(new Set(refused.map(({ status }) => status)), new Set(['rejected']));
    // Whoever connects anew at once still finds the old one.
    await delay(500);
    address.leadTo(successor.server.port);
    const allWrite = async () => {
      const written = await Promise.allSettled(clients.map((client) => client.set('sluice:key', 'new')));
      assert.ok(written.every(({ status }) => status === 'fulfilled'));
    };
    await eventually(allWrite, 2000);
    assert.equal(await successor.administrator.get('sluice:key'), 'new');
  });
});
