import { randomBytes } from 'node:crypto';
import { FaultProxy } from '../../campaign/fault-proxy.ts';
import { startRedis } from '../../support/redis.ts';
import type { Drill, Stage } from './stage.ts';

async function openOne(stage: Stage): Promise<void> {
  await stage.openGateway();
  await stage.startApi();
  await stage.startWorker();
}

const stoppedRedis: Drill = {
  fault: 'Redis hangs',
  alerts: ['SluiceRedisUnreachable'],
  open: openOne,
  begin: async (stage) => {
    const pid = stage.gateway.redis?.pid as number;
    process.kill(pid, 'SIGSTOP');
    stage.use(() => process.kill(pid, 'SIGCONT'));
  },
  end: async (stage) => {
    process.kill(stage.gateway.redis?.pid as number, 'SIGCONT');
  },
};

const proxies = new WeakMap<Stage, FaultProxy>();

const slowRedis: Drill = {
  fault: 'the way to Redis takes 80 ms in each direction',
  alerts: ['SluiceRedisSlow'],
  open: async (stage) => {
    const redis = await startRedis();
    stage.use(() => redis.stop());
    const proxy = await FaultProxy.start(redis.port);
    stage.use(() => proxy.close());
    proxies.set(stage, proxy);
    await stage.openGateway({ redisUrl: `redis://127.0.0.1:${proxy.port}` });
    await stage.startApi();
    await stage.startWorker();
  },
  begin: async (stage) => {
    (proxies.get(stage) as FaultProxy).delayMs = 80;
  },
  end: async (stage) => {
    (proxies.get(stage) as FaultProxy).delayMs = 0;
  },
};

async function usedMemory(stage: Stage): Promise<number> {
  return Number(/^used_memory:(\d+)/m.exec(await stage.redis().info('memory'))?.[1]);
}

const fullRedis: Drill = {
  fault: 'Redis uses 65 % of its memory',
  alerts: ['SluiceRedisMemory'],
  open: openOne,
  begin: async (stage) => {
    const limit = Math.round((await usedMemory(stage)) / 0.65);
    await stage.redis().config('SET', 'maxmemory', String(limit));
  },
  end: async (stage) => {
    await stage.redis().config('SET', 'maxmemory', '0');
  },
};

const evictingRedis: Drill = {
  fault: 'Redis evicts keys',
  alerts: ['SluiceRedisEvicting'],
  open: openOne,
  begin: async (stage) => {
    const redis = stage.redis();
    await redis.config('SET', 'maxmemory-policy', 'volatile-lru');
    await redis.config('SET', 'maxmemory', String((await usedMemory(stage)) + 2e6));
    for (let count = 0; count < 80; count++) await redis.set(`drill:${count}`, randomBytes(50_000), 'EX', 600);
  },
  end: async (stage) => {
    await stage.redis().config('SET', 'maxmemory-policy', 'noeviction');
    await stage.redis().config('SET', 'maxmemory', '0');
  },
};

/** Faults of Redis. */
export const redisDrills: readonly Drill[] = [stoppedRedis, slowRedis, fullRedis, evictingRedis];
