/** `npm run ledger`: the ledger's work in a process of its own, for apis with `SLUICE_LEDGER=off`. */
import { Blobs } from '../../shared/blobs/blobs.ts';
import { claimStorage } from '../../shared/blobs/storage-claim.ts';
import { type Config, ConfigError, readConfig, readSettingNotices } from '../../shared/config/config.ts';
import { refuseArguments, startFailure } from '../../shared/config/start-failure.ts';
import { openDatabase } from '../../shared/database/database.ts';
import { claimDatabase } from '../../shared/database/database-claim.ts';
import { newProcessId } from '../../shared/ids.ts';
import { ProcessReports } from '../../shared/queue/process-registry.ts';
import { QueueShards } from '../../shared/queue/queue-shards.ts';
import { openQueues } from '../../shared/queue/sharded-queue.ts';
import { connectRedis } from '../../shared/redis/redis.ts';
import { RedisClock } from '../../shared/redis/redis-clock.ts';
import { checkRedisMemory } from '../../shared/redis/redis-memory.ts';
import { Closers } from '../../shared/runtime/closers.ts';
import { createLogger, type Logger } from '../../shared/runtime/log.ts';
import { createApiMetrics, createFaultCounter, createRegistry } from '../../shared/runtime/metrics.ts';
import { Scrapes } from '../../shared/runtime/metrics-access.ts';
import { keepFilesPrivate } from '../../shared/runtime/private-files.ts';
import { keepHangupForReload, reloadOnHangup } from '../../shared/runtime/reload.ts';
import { serveHealth } from '../../shared/runtime/serve-health.ts';
import { closeOnSignal } from '../../shared/runtime/shutdown.ts';
import { openLedger } from './open-ledger.ts';

async function start(): Promise<void> {
  keepHangupForReload();
  keepFilesPrivate();
  refuseArguments(process.argv.slice(2), 'npm run ledger');
  const config = readConfig();
  const { log, flush } = createLogger(config.logLevel, 'ledger');
  for (const { sentence } of readSettingNotices()) log.warn(sentence);
  const closers = new Closers();
  const registry = await open(config, log, closers);
  closeOnSignal({
    log,
    flush,
    timeoutMs: config.shutdownMs,
    faults: createFaultCounter(registry),
    close: (signal) => closers.close(signal),
  });
  // It uses neither models nor vendors, but SIGHUP, which is sent to all processes, would end it; and changed limits are told.
  closers.add(reloadOnHangup({ config, log, apply: () => undefined }));
  log.info('writing the records of jobs');
  // Whoever reads it may send signals at once.
  process.send?.({ type: 'writing' });
}

/** Opens all that the ledger needs, and starts its work. Returns the process's metrics. */
async function open(config: Config, log: Logger, closers: Closers) {
  if (config.redisUrl === undefined) {
    throw new ConfigError('REDIS_URL is not set: a ledger process needs it (npm start brings its own Redis).');
  }
  const db = await openDatabase(config);
  closers.add(() => db.destroy());
  const redis = closers.use(await connectRedis(config.redisUrl, log, config.redisTls));
  // An api warns of what is not refused.
  await checkRedisMemory(redis.client, config.allowsEviction);
  closers.use(await claimDatabase(redis.client, db, log));
  const clock = closers.use(await RedisClock.open(redis.client, log));
  const blobs = closers.use(await Blobs.open(config.dataDir, config.bucket, () => clock.later()));
  closers.use(await claimStorage(redis.client, blobs, log));
  const processId = newProcessId('ledger');
  closers.use(await ProcessReports.open({ redis: redis.client, processId, log }));
  const queues = openQueues(redis.client, closers.use(await QueueShards.open(config, redis, log)), closers);
  const registry = createRegistry('ledger', redis.client);
  const ledger = await openLedger({
    ...{ config, log, db, blobs, clock, processId, registry },
    redis: redis.client,
    isCluster: redis.isCluster,
    queues,
    metrics: createApiMetrics(registry),
  });
  closers.use(ledger);
  if (config.metricsPort !== undefined) {
    const place = { ...config, port: config.metricsPort };
    const health = await serveHealth(place, new Scrapes(registry), redis.client, 'METRICS_PORT');
    closers.add(() => void health.close());
  }
  return registry;
}

start().catch((error) => {
  process.stderr.write(`${startFailure(error)}\n`);
  process.exit(1);
});
