import { claimStorage } from '../shared/blobs/storage-claim.ts';
import { type Config, ConfigError, readConfig, readSettingNotices } from '../shared/config/config.ts';
import { everyAddressNotice } from '../shared/config/own-addresses.ts';
import { refuseArguments, startFailure } from '../shared/config/start-failure.ts';
import { tryDatabase } from '../shared/database/database.ts';
import { DatabaseActivity } from '../shared/database/database-activity.ts';
import { Secrets } from '../shared/database/secrets.ts';
import { Inbox, readerOf } from '../shared/jobs/inbox.ts';
import { Sweeper, sweepActions } from '../shared/jobs/settlement/sweeper.ts';
import { ProcessReports, readReports } from '../shared/queue/process-registry.ts';
import { connectRedis } from '../shared/redis/redis.ts';
import { checkRedisMemory } from '../shared/redis/redis-memory.ts';
import { Closers } from '../shared/runtime/closers.ts';
import { listen } from '../shared/runtime/listen.ts';
import { createLogger, type Logger } from '../shared/runtime/log.ts';
import { createFaultCounter, startAtZero } from '../shared/runtime/metrics.ts';
import { keepFilesPrivate, tightenDataDir } from '../shared/runtime/private-files.ts';
import { keepHangupForReload, reloadOnHangup } from '../shared/runtime/reload.ts';
import { metricsServer } from '../shared/runtime/serve-metrics.ts';
import { closeOnSignal } from '../shared/runtime/shutdown.ts';
import { withTimeout } from '../shared/runtime/with-timeout.ts';
import { createApp } from './app.ts';
import { openFilesWarning } from './bounds/open-files.ts';
import { DatabaseHealth } from './ledger/database-health.ts';
import { keptAnswerMs, openLedger } from './ledger/open-ledger.ts';
import { RedisWatch } from './ledger/redis-watch.ts';
import { setUpDatabase } from './ledger/set-up-database.ts';
import { syncRedis } from './ledger/sync-redis.ts';
import { addProcessGauges } from './metrics/process-gauges.ts';
import { addSharedGauges } from './metrics/shared-gauges.ts';
import { createApiServer } from './server.ts';
import { openServices, type Services } from './services.ts';

/** Minimum time by which blobs outlive the answers, requests and links that refer to them. */
const blobMarginMs = 2 * 3_600_000;
const housekeepingMs = 600_000;
/** How long accepted jobs may be written for while the process closes. */
const acceptedMs = 2000;

/** Deletes old blobs, and expired sessions. The first blobs of an answer may precede its end by a job's duration. */
function startHousekeeping({ config, blobs, sessions, clock, log }: Services): NodeJS.Timeout {
  const blobMs = keptAnswerMs(config) + Math.max(config.deadlineMs, config.backgroundDeadlineMs) + blobMarginMs;
  const housekeeping = setInterval(() => {
    const now = clock.earlier();
    blobs.sweep(blobMs, now).catch((error) => log.warn({ err: error }, 'removing old blobs failed'));
    sessions.removeExpired(now).catch((error) => log.warn({ err: error }, 'removing expired sessions failed'));
  }, housekeepingMs);
  housekeeping.unref();
  return housekeeping;
}

/** Tells the operator where others could read what the gateway keeps, and if the process may open too few files. */
async function warnOfSurroundings(config: Config, log: Logger): Promise<void> {
  const fewFiles = await openFilesWarning(config.maxConnections);
  if (fewFiles !== undefined) log.warn(fewFiles);
  const warning = await tightenDataDir(config.dataDir);
  if (warning !== undefined) log.warn(warning);
  if (config.databaseUrl !== undefined && config.secret === undefined) {
    log.warn('SLUICE_SECRET is not set: what signs cookies and result links lies in the database that it protects.');
  }
}

/** Tells the operator which of the default models nobody can be answered by. */
function warnOfDefaultModels({ config, catalogue, log }: Pick<Services, 'config' | 'catalogue' | 'log'>): void {
  for (const capability of ['image', 'video'] as const) {
    const model = config.defaultModels[capability];
    if (model === undefined || catalogue.find(model, capability)?.capability === capability) continue;
    const message = `SLUICE_DEFAULT_MODELS: ${capability}=${model} is no ${capability} model of this gateway, so requests without a model fail`;
    log.warn({ nearest: catalogue.nearest(model) }, message);
  }
}

function replaceModels(services: Services, changed: Config): void {
  services.catalogue.replace(changed);
  warnOfDefaultModels(services);
}

async function start(): Promise<void> {
  keepHangupForReload();
  keepFilesPrivate();
  refuseArguments(process.argv.slice(2), 'npm run api');
  const config = readConfig();
  const { log, flush } = createLogger(config.logLevel, 'api');
  for (const { sentence } of readSettingNotices()) log.warn(sentence);
  if (config.redisUrl === undefined) {
    throw new ConfigError('REDIS_URL is not set: an api process needs it (npm start brings its own Redis).');
  }
  await warnOfSurroundings(config, log);
  const closers = new Closers();
  const activity = new DatabaseActivity();
  const tried = await tryDatabase(config, activity);
  const { db } = tried;
  closers.add(() => db.destroy());
  const redis = closers.use(await connectRedis(config.redisUrl, log, config.redisTls));
  for (const warning of await checkRedisMemory(redis.client, config.allowsEviction)) log.warn(warning);
  // The budgets of rotated keys are where a process of the release before finds them, if one runs.
  await readReports(redis.client);
  const database = new DatabaseHealth(db, activity);
  const watch = closers.use(
    new RedisWatch({
      redis: redis.client,
      raise: () => syncRedis(db, redis.client),
      // To raise Redis it only has to be read.
      isDatabaseThere: async (ms) => (await database.state(ms)) !== 'unavailable',
      log,
    }),
  );
  const secrets = new Secrets();
  closers.use(await setUpDatabase({ config, tried, redis: redis.client, watch, secrets, log }));
  const services = await openServices({ config, redis, db, database, secrets, watch, log }, closers);
  closers.use(await claimStorage(redis.client, services.blobs, log));
  closers.use(await Inbox.open(redis, readerOf(services.processId), services.readers, log));
  closers.use(await ProcessReports.open({ redis: redis.client, processId: services.processId, log }));
  closers.add(() => withTimeout(services.acceptedJobs.close(), acceptedMs));
  if (config.runsLedger) closers.use(await openLedger({ ...services, db }));
  addProcessGauges(services.registry, { ...services, db, activity });
  addSharedGauges(services.registry, services);
  // Closed before the ledger, which writes what it settles.
  const { swept } = services.metrics;
  startAtZero(swept, 'action', sweepActions);
  closers.use(new Sweeper(services, log, (action) => swept.inc({ action })));
  closers.use(services.leftJobs);
  closers.use(services.sharedJobs);
  const housekeeping = startHousekeeping(services);
  closers.add(() => clearInterval(housekeeping));
  if (config.metricsPort !== undefined) {
    const metrics = metricsServer(config.metricsToken, services.scrapes);
    await listen(metrics, config.metricsPort, config, 'METRICS_PORT');
    closers.add(() => void metrics.close());
  }
  let isClosing = false;
  const server = createApiServer(
    createApp(services, db, () => isClosing),
    services,
  );
  await server.listen();
  closers.add((signal) => server.drain(signal));
  warnOfDefaultModels(services);
  closers.add(reloadOnHangup({ config, log, apply: (changed) => replaceModels(services, changed) }));
  closers.add(() => {
    isClosing = true;
  });
  log.info({ host: config.host, port: config.port, cluster: redis.isCluster }, 'listening');
  const notice = everyAddressNotice(config);
  if (notice !== undefined) log.info(notice);
  closeOnSignal({
    log,
    flush,
    timeoutMs: config.shutdownMs,
    faults: createFaultCounter(services.registry),
    leave: async (signal) => {
      isClosing = true;
      await server.leave(signal);
    },
    close: (signal) => closers.close(signal),
  });
  // Whoever reads it may send signals at once.
  process.send?.({ type: 'listening', url: services.baseUrl });
}

start().catch((error) => {
  process.stderr.write(`${startFailure(error)}\n`);
  process.exit(1);
});
