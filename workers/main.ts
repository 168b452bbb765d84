import { Blobs } from '../shared/blobs/blobs.ts';
import { claimStorage } from '../shared/blobs/storage-claim.ts';
import { type Capability, capabilities, isCapability } from '../shared/capabilities/capability.ts';
import { createCatalogue } from '../shared/catalogue/catalogue.ts';
import { type Config, ConfigError, readConfig, readSettingNotices } from '../shared/config/config.ts';
import { startFailure } from '../shared/config/start-failure.ts';
import { AccountBandwidth } from '../shared/fairness/account-bandwidth.ts';
import { newProcessId } from '../shared/ids.ts';
import { Inbox } from '../shared/jobs/inbox.ts';
import { shardOf } from '../shared/jobs/job-state.ts';
import { Settler } from '../shared/jobs/settlement/settle.ts';
import { ParkedJobs } from '../shared/queue/parking/parked-jobs.ts';
import { ProcessReports } from '../shared/queue/process-registry.ts';
import { QueueShards } from '../shared/queue/queue-shards.ts';
import { openQueues, queueOf } from '../shared/queue/sharded-queue.ts';
import { batchWhenBusy, clusterBusyMs } from '../shared/redis/command-batcher.ts';
import { connectRedis, type RedisClient } from '../shared/redis/redis.ts';
import { RedisClock } from '../shared/redis/redis-clock.ts';
import { checkRedisMemory } from '../shared/redis/redis-memory.ts';
import { Closers } from '../shared/runtime/closers.ts';
import { createLogger, type Logger } from '../shared/runtime/log.ts';
import { createFaultCounter, createPacedFrames, createRegistry, type Registry } from '../shared/runtime/metrics.ts';
import { Scrapes } from '../shared/runtime/metrics-access.ts';
import { keepFilesPrivate } from '../shared/runtime/private-files.ts';
import { keepHangupForReload, reloadOnHangup } from '../shared/runtime/reload.ts';
import { serveHealth } from '../shared/runtime/serve-health.ts';
import { closeOnSignal } from '../shared/runtime/shutdown.ts';
import { withTimeout } from '../shared/runtime/with-timeout.ts';
import { openTracer } from '../shared/tracing/open-tracer.ts';
import { traceHeaders } from '../shared/tracing/trace-context.ts';
import { Heartbeat } from './heartbeat.ts';
import { boundAnswers } from './http/answer-memory.ts';
import { connectThrough, sendTraces } from './http/http-client.ts';
import { proxyConnector } from './http/proxy-connector.ts';
import { Pacer } from './pacing/pacer.ts';
import { consume } from './queue/consume.ts';
import type { Consumer } from './queue/consumer.ts';
import { Parking } from './queue/parking.ts';
import { VendorLines } from './queue/vendor-lines.ts';
import { changedRoutes, routesByModel } from './routing/changed-routes.ts';
import { checkKeys } from './routing/check-keys.ts';
import { Routing } from './routing/routing.ts';
import { SharedHealth } from './routing/shared-health.ts';
import { AnswerJournal } from './run/answer-journal.ts';
import { RunningJobs } from './run/job-run.ts';
import { RequestMemory } from './run/request-memory.ts';
import { TaskSteps } from './run/task-steps.ts';
import type { WorkerContext } from './worker-context.ts';
import { reportSlots } from './worker-metrics.ts';

/** How long calls of a busy process to one Redis wait to be batched. */
const busyMs = 1;
/** How long open connections to vendors may take to close. */
const vendorsCloseMs = 2000;

/** The capabilities named on the command line, each once: twice it would run twice as many jobs. All of them if none is named. */
function readCapabilities(names: string[]): readonly Capability[] {
  const unknown = names.find((name) => !isCapability(name));
  if (unknown !== undefined) {
    throw new ConfigError(`There is no capability "${unknown}": choose from ${capabilities.join(', ')}.`);
  }
  return names.length === 0 ? capabilities : [...new Set(names as Capability[])];
}

/** The parked jobs of the capabilities that this worker serves, by shard of their queues. */
function openParking(
  wanted: readonly Capability[],
  redis: RedisClient,
  { shards, highShare }: { readonly shards: Pick<QueueShards, 'count'>; readonly highShare: number },
  closers: Closers,
  log: Logger,
): { readonly of: WorkerContext['parking']; readonly reconsider: Parking['reconsider'] } {
  const open = new Map<string, Parking>();
  const lines = new VendorLines();
  const parkingOf = (capability: Capability, shard: number): Parking => {
    const name = `${capability} ${shard}`;
    let found = open.get(name);
    if (found === undefined) {
      found = new Parking(capability, new ParkedJobs(capability, redis, shard, highShare), log, lines);
      open.set(name, found);
    }
    return found;
  };
  for (const capability of wanted) for (let shard = 0; shard < shards.count; shard++) parkingOf(capability, shard);
  closers.add(async () => void (await Promise.all([...open.values()].map((parking) => parking.close()))));
  return {
    of: (job) => parkingOf(job.capability, shardOf(job)),
    reconsider: async (isLimited) => {
      await Promise.all([...open.values()].map((parking) => parking.reconsider(isLimited)));
    },
  };
}

async function openTracing(config: Config, closers: Closers, log: Logger): Promise<WorkerContext['tracer']> {
  const tracer = await openTracer(config.tracing, 'worker', log);
  if (tracer === undefined) return undefined;
  sendTraces(traceHeaders);
  return closers.use(tracer);
}

/** The routing of this worker, which knows what other workers have found. */
async function openRouting(
  config: Config,
  context: Pick<WorkerContext, 'redis' | 'clock' | 'log' | 'workerId'> & { readonly registry: Registry },
): Promise<Routing> {
  const { redis, clock, log, workerId, registry } = context;
  // Before any client of a vendor is made.
  if (config.proxy !== undefined) connectThrough(proxyConnector(config.proxy));
  const pacer = await Pacer.open(context, workerId, config.vendors);
  return new Routing(config, registry, log, pacer, await SharedHealth.open(redis, clock, log));
}

/** Checks the keys, and returns what checks those that have come since. */
function keyChecker(context: WorkerContext, closers: Closers): () => void {
  const stopping = new AbortController();
  closers.add(() => stopping.abort());
  const check = (): void => {
    if (context.config.checksKeys) void checkKeys(context, stopping.signal);
  };
  check();
  return check;
}

/** Serves health and metrics, where a port is set for them. */
async function serveOwnHealth(config: Config, scrapes: Scrapes, redis: RedisClient, closers: Closers): Promise<void> {
  if (config.workerPort === undefined) return;
  const health = await serveHealth({ ...config, port: config.workerPort }, scrapes, redis, 'WORKER_PORT');
  closers.add(() => void health.close());
}

async function start(): Promise<void> {
  keepHangupForReload();
  keepFilesPrivate();
  const config = readConfig();
  const wanted = readCapabilities(process.argv.slice(2));
  const { log, flush } = createLogger(config.logLevel, 'worker');
  for (const { sentence } of readSettingNotices()) log.warn(sentence);
  if (config.redisUrl === undefined) {
    throw new ConfigError('REDIS_URL is not set: a worker process needs it (npm start brings its own Redis).');
  }
  const closers = new Closers();
  const redis = closers.use(await connectRedis(config.redisUrl, log, config.redisTls));
  // An api warns of what is not refused.
  await checkRedisMemory(redis.client, config.allowsEviction);
  boundAnswers(config.bodyBytes);
  const workerId = newProcessId('worker');
  const registry = createRegistry('worker', redis.client, { isTraced: config.tracing !== undefined });
  const shards = closers.use(await QueueShards.open(config, redis, log));
  const queues = openQueues(redis.client, shards, closers);
  const clock = closers.use(await RedisClock.open(redis.client, log));
  const routing = await openRouting(config, { redis: redis.client, clock, log, workerId, registry });
  closers.add(() => withTimeout(routing.close(), vendorsCloseMs));
  const tracer = await openTracing(config, closers, log);
  const parking = openParking(wanted, redis.client, { shards, highShare: config.highShare }, closers, log);
  const running = closers.use(new RunningJobs(redis.client, log));
  batchWhenBusy(redis.client, running, redis.isCluster ? clusterBusyMs : busyMs);
  const context: WorkerContext = {
    config,
    clock,
    workerId,
    redis: redis.client,
    isCluster: redis.isCluster,
    shards,
    queues,
    queue: queueOf(queues),
    blobs: closers.use(await Blobs.open(config.dataDir, config.bucket, () => clock.later())),
    requestMemory: new RequestMemory(config.bodyBytes),
    catalogue: createCatalogue(config),
    vendors: routing.vendors,
    router: routing.router,
    parking: parking.of,
    running,
    taskSteps: new TaskSteps(config.workerConcurrency.video),
    journal: redis.isCluster ? undefined : closers.use(new AnswerJournal(redis.client, workerId, log)),
    bandwidth: new AccountBandwidth(config.streamBandwidth, createPacedFrames(registry)),
    settler: closers.use(new Settler(redis.client, log)),
    metrics: routing.metrics,
    log,
    tracer,
  };
  closers.use(await claimStorage(redis.client, context.blobs, log));
  // Before the first job is claimed: an abort for it must find this process listening.
  closers.use(await Inbox.open(redis, workerId, running, log));
  // Both are closed after the consumers: a worker that drains is still there.
  await serveOwnHealth(config, new Scrapes(registry), redis.client, closers);
  closers.use(new Heartbeat(context, wanted, routing));
  reportSlots(context.metrics, wanted, config.workerConcurrency);
  closers.use(await ProcessReports.open({ redis: redis.client, processId: workerId, log }));
  const consumers = wanted.map((capability) => consume(capability, redis, context));
  closers.add((signal) => drain(consumers, context, signal));
  log.info({ capabilities: wanted, vendors: routing.vendors.names(), worker: workerId }, 'consuming');
  const apply = applierOf(context, routing, parking, keyChecker(context, closers));
  // Before the message that it is ready: the launcher sends the signal on from then on.
  closers.add(reloadOnHangup({ config, log, apply }));
  closeOnSignal({
    log,
    flush,
    timeoutMs: config.shutdownMs,
    faults: createFaultCounter(registry),
    close: (signal) => closers.close(signal),
  });
  // Whoever reads it may send signals at once.
  process.send?.({ type: 'consuming', capabilities: wanted });
}

/** Returns what applies a changed configuration to a worker that runs. */
function applierOf(
  { catalogue }: Pick<WorkerContext, 'catalogue'>,
  routing: Pick<Routing, 'replace' | 'isLimited'>,
  parking: Pick<ReturnType<typeof openParking>, 'reconsider'>,
  checkNewKeys: () => void,
): (changed: Config) => void {
  return (changed) => {
    const before = routesByModel(catalogue);
    catalogue.replace(changed);
    routing.replace(changed);
    const rerouted = changedRoutes(before, routesByModel(catalogue));
    void parking.reconsider((route) => !rerouted.has(route) && routing.isLimited(route));
    checkNewKeys();
  };
}

/** Claims no more jobs from here on, and resolves when the running ones have ended. */
async function drain(
  consumers: readonly Consumer[],
  { running, log }: WorkerContext,
  signal: AbortSignal,
): Promise<void> {
  const closed = Promise.all(consumers.map((consumer) => consumer.close()));
  const { drained, ...counts } = running.drain();
  log.info(counts, 'waiting for running jobs');
  signal.addEventListener('abort', () => running.requeueAll(), { once: true });
  await closed;
  log.info(drained, 'running jobs are over');
}

start().catch((error) => {
  process.stderr.write(`${startFailure(error)}\n`);
  process.exit(1);
});
