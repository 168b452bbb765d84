import { createServer, type Server } from 'node:http';
import { StorageClaim } from '../shared/blobs/storage-claim.ts';
import { Blobs } from '../shared/blobs.ts';
import { type Capability, capabilities, isCapability } from '../shared/capabilities/capability.ts';
import { createCatalogue } from '../shared/catalogue/catalogue.ts';
import { ConfigError, readConfig } from '../shared/config.ts';
import { newProcessId } from '../shared/ids.ts';
import { Inbox } from '../shared/jobs/inbox.ts';
import { createLogger } from '../shared/log.ts';
import type { Registry } from '../shared/metrics.ts';
import { createRegistry, createWorkerMetrics, redisLag } from '../shared/metrics.ts';
import { CapabilityQueue } from '../shared/queue.ts';
import { connectRedis, type RedisClient } from '../shared/redis.ts';
import { closeOnSignal } from '../shared/shutdown.ts';
import { within } from '../shared/within.ts';
import { consume } from './consume.ts';
import { RunningJobs } from './running-jobs.ts';
import { Settler } from './settler.ts';
import { createVendors } from './vendors/registry.ts';
import type { WorkerContext } from './worker-context.ts';

/** The capabilities named on the command line; all of them when none is. */
function readCapabilities(names: string[]): readonly Capability[] {
  const unknown = names.find((name) => !isCapability(name));
  if (unknown !== undefined) {
    throw new ConfigError(`There is no capability "${unknown}": choose from ${capabilities.join(', ')}.`);
  }
  return names.length === 0 ? capabilities : (names as Capability[]);
}

/** `/healthz`, `/readyz` and `/metrics` of a worker, where it has a port. */
function serveHealth(port: number, host: string, registry: Registry, redis: RedisClient): Server {
  const server = createServer(async (request, response) => {
    if (request.url === '/healthz') response.end('{"status":"ok"}');
    else if (request.url === '/readyz') {
      const isReady = (await redisLag(redis)) >= 0;
      response.statusCode = isReady ? 200 : 503;
      response.end(JSON.stringify({ status: isReady ? 'ok' : 'unavailable' }));
    } else if (request.url === '/metrics') {
      response.setHeader('content-type', registry.contentType);
      response.end(await registry.metrics());
    } else {
      response.statusCode = 404;
      response.end();
    }
  });
  return server.listen(port, host);
}

async function start(): Promise<void> {
  const config = readConfig();
  const wanted = readCapabilities(process.argv.slice(2));
  const { log, flush } = createLogger(config.logLevel, 'worker');
  if (config.redisUrl === undefined) {
    throw new ConfigError('REDIS_URL is not set: a worker process needs it (npm start brings its own Redis).');
  }
  const redis = await connectRedis(config.redisUrl, log);
  const workerId = newProcessId('worker');
  const registry = createRegistry('worker', redis.client);
  const queues = new Map(capabilities.map((capability) => [capability, new CapabilityQueue(capability, redis.client)]));
  const vendors = createVendors(config);
  const running = new RunningJobs(redis.client, log);
  const context: WorkerContext = {
    config,
    workerId,
    redis: redis.client,
    isCluster: redis.isCluster,
    queue: (capability) => queues.get(capability) as CapabilityQueue,
    blobs: await Blobs.open(config.dataDir, config.bucket),
    catalogue: createCatalogue(new Set(vendors.keys())),
    vendors,
    running,
    settler: new Settler(redis.client, log),
    metrics: createWorkerMetrics(registry),
    log,
  };
  const claim = await StorageClaim.open(redis.client, context.blobs, log);
  // Before the first job is taken: an abort for it must find this process listening.
  const inbox = await Inbox.open(redis, workerId, running, log);
  const workers = wanted.map((capability) => consume(capability, redis.client, context));
  const health =
    config.workerPort === undefined ? undefined : serveHealth(config.workerPort, config.host, registry, redis.client);
  log.info({ capabilities: wanted, vendors: [...vendors.keys()], worker: workerId }, 'consuming');
  process.send?.({ type: 'consuming', capabilities: wanted });

  closeOnSignal({
    log,
    flush,
    timeoutMs: config.shutdownMs,
    close: async (signal) => {
      // Takes no more jobs from here on, and resolves when the running ones are over.
      const closed = Promise.all(workers.map((worker) => worker.close()));
      signal.addEventListener('abort', () => running.giveBackAll(), { once: true });
      await closed;
      running.close();
      await context.settler.close();
      inbox.close();
      claim.close();
      context.blobs.close();
      health?.close();
      await within(Promise.all([...vendors.values()].map((vendor) => vendor.close())), 2000);
      await Promise.all([...queues.values()].map((queue) => queue.close()));
      await redis.close();
    },
  });
}

start().catch((error) => {
  process.stderr.write(`${error instanceof ConfigError ? error.message : error.stack}\n`);
  process.exit(1);
});
