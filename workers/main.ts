import { Blobs } from '../shared/blobs/blobs.ts';
import { StorageClaim } from '../shared/blobs/storage-claim.ts';
import { type Capability, capabilities, isCapability } from '../shared/capabilities/capability.ts';
import { createCatalogue } from '../shared/catalogue/catalogue.ts';
import { ConfigError, readConfig, readSettingNotices } from '../shared/config/config.ts';
import { newProcessId } from '../shared/ids.ts';
import { Inbox } from '../shared/jobs/inbox.ts';
import { CapabilityQueue } from '../shared/queue/queue.ts';
import { waitForCompany } from '../shared/redis/command-batcher.ts';
import { connectRedis } from '../shared/redis/redis.ts';
import { RedisClock } from '../shared/redis/redis-clock.ts';
import { createLogger } from '../shared/runtime/log.ts';
import { createFaultCounter, createRegistry } from '../shared/runtime/metrics.ts';
import { Scrapes } from '../shared/runtime/metrics-access.ts';
import { keepFilesPrivate } from '../shared/runtime/private-files.ts';
import { reloadOnHangup } from '../shared/runtime/reload.ts';
import { closeOnSignal } from '../shared/runtime/shutdown.ts';
import { withTimeout } from '../shared/runtime/with-timeout.ts';
import { Heartbeat } from './heartbeat.ts';
import { consume } from './queue/consume.ts';
import { RunningJobs } from './queue/running-jobs.ts';
import { Settler } from './queue/settler.ts';
import { checkKeys } from './routing/check-keys.ts';
import { Routing } from './routing/routing.ts';
import { serveHealth } from './serve-health.ts';
import type { WorkerContext } from './worker-context.ts';

/** With so many running jobs a word to Redis waits a moment for others: its write costs more than what it says. */
const busy = 8;
const busyMs = 1;

/** The capabilities named on the command line; all of them when none is. */
function readCapabilities(names: string[]): readonly Capability[] {
  const unknown = names.find((name) => !isCapability(name));
  if (unknown !== undefined) {
    throw new ConfigError(`There is no capability "${unknown}": choose from ${capabilities.join(', ')}.`);
  }
  return names.length === 0 ? capabilities : (names as Capability[]);
}

async function start(): Promise<void> {
  keepFilesPrivate();
  const config = readConfig();
  const wanted = readCapabilities(process.argv.slice(2));
  const { log, flush } = createLogger(config.logLevel, 'worker');
  for (const { sentence } of readSettingNotices()) log.warn(sentence);
  if (config.redisUrl === undefined) {
    throw new ConfigError('REDIS_URL is not set: a worker process needs it (npm start brings its own Redis).');
  }
  const redis = await connectRedis(config.redisUrl, log);
  const workerId = newProcessId('worker');
  const registry = createRegistry('worker', redis.client);
  const queues = new Map(capabilities.map((capability) => [capability, new CapabilityQueue(capability, redis.client)]));
  const routing = new Routing(config, registry, log);
  const running = new RunningJobs(redis.client, log);
  waitForCompany(redis.client, () => (running.size >= busy ? busyMs : 0));
  const clock = await RedisClock.open(redis.client);
  const context: WorkerContext = {
    config,
    clock,
    workerId,
    redis: redis.client,
    isCluster: redis.isCluster,
    queue: (capability) => queues.get(capability) as CapabilityQueue,
    blobs: await Blobs.open(config.dataDir, config.bucket),
    catalogue: createCatalogue(config),
    vendors: routing.vendors,
    router: routing.router,
    running,
    settler: new Settler(redis.client, log),
    metrics: routing.metrics,
    log,
  };
  const claim = await StorageClaim.open(redis.client, context.blobs, log);
  // Before the first job is taken: an abort for it must find this process listening.
  const inbox = await Inbox.open(redis, workerId, running, log);
  const workers = wanted.map((capability) => consume(capability, redis, context));
  const health =
    config.workerPort === undefined
      ? undefined
      : serveHealth({ ...config, port: config.workerPort }, new Scrapes(registry), redis.client);
  log.info({ capabilities: wanted, vendors: routing.vendors.names(), worker: workerId }, 'consuming');
  // Before the word that it is ready: the launcher sends the signal on from then on.
  const stopReloading = reloadOnHangup({
    log,
    apply: (changed) => {
      context.catalogue.replace(changed);
      routing.replace(changed);
    },
  });
  const heartbeat = new Heartbeat(context, wanted, routing);
  const stopping = new AbortController();
  if (config.checksKeys) void checkKeys(context, stopping.signal);
  process.send?.({ type: 'consuming', capabilities: wanted });

  closeOnSignal({
    log,
    flush,
    timeoutMs: config.shutdownMs,
    faults: createFaultCounter(registry),
    close: async (signal) => {
      stopReloading();
      stopping.abort();
      // Takes no more jobs from here on, and resolves when the running ones are over.
      const closed = Promise.all(workers.map((worker) => worker.close()));
      signal.addEventListener('abort', () => running.requeueAll(), { once: true });
      await closed;
      await heartbeat.close();
      running.close();
      await context.settler.close();
      inbox.close();
      claim.close();
      clock.close();
      context.blobs.close();
      health?.close();
      await withTimeout(routing.vendors.close(), 2000);
      await Promise.all([...queues.values()].map((queue) => queue.close()));
      await redis.close();
    },
  });
}

start().catch((error) => {
  process.stderr.write(`${error instanceof ConfigError ? error.message : error.stack}\n`);
  process.exit(1);
});
