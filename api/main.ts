import { createServer, type Server } from 'node:http';
import type { Socket } from 'node:net';
import { ensureApiKey } from '../shared/accounts/api-keys.ts';
import { Blobs } from '../shared/blobs/blobs.ts';
import { StorageClaim } from '../shared/blobs/storage-claim.ts';
import { capabilities } from '../shared/capabilities/capability.ts';
import { createCatalogue } from '../shared/catalogue/catalogue.ts';
import { type Config, ConfigError, readConfig, readSettingNotices } from '../shared/config/config.ts';
import { everyAddressNotice, ownBaseUrls } from '../shared/config/own-addresses.ts';
import { type Database, openDatabase } from '../shared/database/database.ts';
import { readSecret } from '../shared/database/secrets.ts';
import { newProcessId } from '../shared/ids.ts';
import { Inbox } from '../shared/jobs/inbox.ts';
import type { JobRecord } from '../shared/jobs/settlement/outbox.ts';
import { Sweeper } from '../shared/jobs/settlement/sweeper.ts';
import { CapabilityQueue } from '../shared/queue/queue.ts';
import { connectRedis, type RedisHandle, redisWarnings } from '../shared/redis/redis.ts';
import { RedisClock } from '../shared/redis/redis-clock.ts';
import { createLogger, type Logger } from '../shared/runtime/log.ts';
import { type ApiMetrics, createApiMetrics, createFaultCounter, createRegistry } from '../shared/runtime/metrics.ts';
import { Scrapes } from '../shared/runtime/metrics-access.ts';
import { keepFilesPrivate, tightenDataDir } from '../shared/runtime/private-files.ts';
import { reloadOnHangup } from '../shared/runtime/reload.ts';
import { metricsServer } from '../shared/runtime/serve-metrics.ts';
import { closeOnSignal } from '../shared/runtime/shutdown.ts';
import { AccountLoader } from './admission/account-loader.ts';
import { idempotencyMs } from './admission/admit.ts';
import { BodyGate } from './admission/body-gate.ts';
import { LoadGauge } from './admission/load-gauge.ts';
import { PayingKeys } from './admission/paying-keys.ts';
import { createApp } from './app.ts';
import { CallerDirectory } from './auth/authenticate.ts';
import { BodyShares } from './bounds/body-shares.ts';
import { Connections } from './bounds/connections.ts';
import { DiskFloor } from './bounds/disk-floor.ts';
import { SocketShares } from './bounds/socket-shares.ts';
import { endpoints } from './endpoints/endpoints.ts';
import { BaseUrls } from './http/base-urls.ts';
import { answerClientErrors, routeExpectations } from './http/client-errors.ts';
import { ForwardedHeaders } from './http/trusted-proxies.ts';
import { routeUpgrades, UpgradableRequest } from './http/websocket-upgrades.ts';
import { AcceptedJobs } from './ledger/accepted-jobs.ts';
import { JobLedger } from './ledger/job-ledger.ts';
import { LedgerProcess } from './ledger/ledger-process.ts';
import { RedisWatch, redisIdentity } from './ledger/redis-watch.ts';
import { StoredJobs } from './ledger/stored-jobs.ts';
import { raiseMoney, syncRedis } from './ledger/sync-redis.ts';
import { Mailer } from './management/mail/mailer.ts';
import { AttemptLimits } from './management/sign-in/attempt-limits.ts';
import { ensureOperator } from './management/sign-in/ensure-operator.ts';
import { KnownDevices } from './management/sign-in/known-devices.ts';
import { type SessionsContext, UserSessions } from './management/sign-in/user-sessions.ts';
import { LargeBodies } from './pipeline/large-bodies.ts';
import { RefusedRequests } from './refused-requests/refused-requests.ts';
import { AnswerReaders } from './replies/answer-readers.ts';
import { Handover } from './replies/client-connection.ts';
import { DeliveredLogs } from './replies/delivered-logs.ts';
import type { View } from './replies/view.ts';
import { ResultLinks } from './results/result-links.ts';
import type { Services } from './services.ts';

/** How long blobs outlive, at least, the answers, requests and links that refer to them. */
const blobMarginMs = 2 * 3_600_000;
const housekeepingMs = 600_000;
/** Requests that an API key may be sending at a time, however few unfinished ones it may have. */
const minBodies = 64;

async function createServices(config: Config, redis: RedisHandle, db: Database, log: Logger): Promise<Services> {
  const queues = new Map(capabilities.map((capability) => [capability, new CapabilityQueue(capability, redis.client)]));
  const blobs = await Blobs.open(config.dataDir, config.bucket);
  const forwarded = new ForwardedHeaders(config.trustedProxies);
  const baseUrls = new BaseUrls(ownBaseUrls(config), forwarded);
  const registry = createRegistry('api', redis.client);
  const metrics = createApiMetrics(registry);
  const load = new LoadGauge(redis.client, queues, config.queueLimit);
  const disk = new DiskFloor(config.dataDir, config.diskFloorBytes);
  await Promise.all([load.refresh(), disk.refresh()]);
  const clock = await RedisClock.open(redis.client);
  const accounts = new AccountLoader(db, redis.client, clock);
  const callers = new CallerDirectory(db, redis.client, log, config.wrongKeysPerMinute);
  const catalogue = createCatalogue(config);
  const bodies = Math.max(minBodies, config.keyConcurrency);
  const mailer = config.mail === undefined ? undefined : new Mailer(config.mail, log);
  const sessionSecret = await readSecret(db, config, 'sessions');
  return {
    config,
    processId: newProcessId('api'),
    redis: redis.client,
    clock,
    isCluster: redis.isCluster,
    queues,
    queue: (capability) => queues.get(capability) as CapabilityQueue,
    load,
    payingKeys: new PayingKeys(),
    accounts,
    readers: new AnswerReaders({ redis: redis.client, blobs, log }),
    delivered: new DeliveredLogs(redis.client, log),
    refused: new RefusedRequests(redis.client, log),
    acceptedJobs: new AcceptedJobs(db, config.bodyRetentionMs, log),
    storedJobs: new StoredJobs({ db, redis: redis.client, blobs }, config.bodyRetentionMs),
    blobs,
    resultLinks: new ResultLinks(await readSecret(db, config, 'result-links')),
    callers,
    sessions: await openSessions({ db, config, log, mailer, secret: sessionSecret.toString('hex') }, baseUrls),
    mailer,
    devices: new KnownDevices(sessionSecret),
    attempts: new AttemptLimits(redis.client),
    catalogue,
    largeBodies: new LargeBodies(),
    bodies: new BodyShares({ bytes: config.bodyBytes, bodies, what: 'requests' }),
    uploads: new BodyShares({ bytes: 2 * config.accountUploadBytes, bodies, what: 'uploads' }),
    bodyGate: new BodyGate({ redis: redis.client, callers, accounts, catalogue, config }),
    disk,
    sockets: new SocketShares(config.keySockets),
    connections: openConnections(config, forwarded, metrics, log),
    metrics,
    registry,
    scrapes: new Scrapes(registry),
    log,
    handover: new Handover(),
    baseUrl: baseUrls.main,
    baseUrls,
    forwarded,
  };
}

function openConnections(config: Config, forwarded: ForwardedHeaders, metrics: ApiMetrics, log: Logger): Connections {
  const isShared = (address: string): boolean => forwarded.isShared(address);
  return new Connections({ ...config, isShared }, log, (reason) => metrics.connectionsCut.inc({ reason }));
}

/** Who signs in to the console; and the operator of the settings, who is there before anybody else can be. */
async function openSessions(context: SessionsContext, baseUrls: BaseUrls): Promise<UserSessions> {
  const { config, db, log } = context;
  if (config.admin !== undefined && (await ensureOperator(db, config.admin)) === 'other_password') {
    log.warn('SLUICE_ADMIN_EMAIL is a user with another password, who therefore is not made an operator.');
  }
  return new UserSessions({ ...context, baseUrls: baseUrls.all, origins: baseUrls.origins });
}

/** Starts what brings the jobs' records into the database. */
async function openLedger(services: Services, db: Database): Promise<LedgerProcess> {
  const { config } = services;
  const views = new Map<string, View>(endpoints.map(({ name, view }) => [name, view]));
  const ledger = new JobLedger({
    ...services,
    db,
    viewOf: (endpoint) => views.get(endpoint),
    retentionMs: config.bodyRetentionMs,
    blobMs: keptAnswerMs(config),
    onLate: (records) => raiseLate(services, db, records),
  });
  return await LedgerProcess.open({ ...services, db, ledger });
}

/** Charges jobs that were settled without their holds: the ledger has them now. Where that fails, the next start does it. */
function raiseLate({ redis, log }: Services, db: Database, records: readonly JobRecord[]): void {
  const accounts = [...new Set(records.map(({ account }) => account))];
  log.warn({ jobs: records.length }, 'charging jobs whose holds Redis lost');
  raiseMoney(db, redis, accounts).catch((error) =>
    log.warn({ err: error }, 'charging jobs whose holds Redis lost failed'),
  );
}

/** How long an answer is kept at most, from its job's end on. */
function keptAnswerMs({ resultMs }: Config): number {
  return Math.max(resultMs, idempotencyMs);
}

/** Removes old blobs, and sessions that have expired. The first blobs of an answer may be as much older than its end as a job takes. */
function startHousekeeping({ config, blobs, sessions, log }: Services): NodeJS.Timeout {
  const blobMs = keptAnswerMs(config) + Math.max(config.deadlineMs, config.backgroundDeadlineMs) + blobMarginMs;
  const housekeeping = setInterval(() => {
    blobs.sweep(blobMs).catch((error) => log.warn({ err: error }, 'removing old blobs failed'));
    sessions.removeExpired().catch((error) => log.warn({ err: error }, 'removing expired sessions failed'));
  }, housekeepingMs);
  housekeeping.unref();
  return housekeeping;
}

/** Listens. @throws ConfigError when the port is taken or may not be used. */
async function listen(server: Server, port: number, { host }: Config, setting = 'PORT'): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      const reason = error.code === 'EADDRINUSE' ? 'is in use' : `cannot be listened on (${error.code})`;
      reject(new ConfigError(`The port ${port} on ${host} ${reason}: set ${setting} to another one.`));
    });
    server.listen(port, host, resolve);
  });
}

/** Tells the operator where others could read what the gateway keeps. */
async function warnOfOpenSecrets(config: Config, log: Logger): Promise<void> {
  const warning = await tightenDataDir(config.dataDir);
  if (warning !== undefined) log.warn(warning);
  if (config.databaseUrl !== undefined && config.secret === undefined) {
    log.warn('SLUICE_SECRET is not set: what signs cookies and result links lies in the database that it protects.');
  }
}

async function start(): Promise<void> {
  keepFilesPrivate();
  const config = readConfig();
  const { log, flush } = createLogger(config.logLevel, 'api');
  for (const { sentence } of readSettingNotices()) log.warn(sentence);
  if (config.redisUrl === undefined) {
    throw new ConfigError('REDIS_URL is not set: an api process needs it (npm start brings its own Redis).');
  }
  await warnOfOpenSecrets(config, log);
  const db = await openDatabase(config);
  const redis = await connectRedis(config.redisUrl, log);
  for (const warning of await redisWarnings(redis.client)) log.warn(warning);
  if (config.apiKey !== undefined && (await ensureApiKey(db, config.apiKey)) === 'revoked') {
    log.warn('SLUICE_BOOTSTRAP_KEY names a key that has been revoked; it stays so.');
  }
  const identity = await redisIdentity(redis.client);
  await syncRedis(db, redis.client);
  const services = await createServices(config, redis, db, log);
  const claim = await StorageClaim.open(redis.client, services.blobs, log);
  const inbox = await Inbox.open(redis, services.processId, services.readers, log);
  const sweeper = new Sweeper(services, log);
  const ledger = await openLedger(services, db);
  const watch = RedisWatch.open({ redis: redis.client, onChange: () => syncRedis(db, redis.client), log }, identity);
  const housekeeping = startHousekeeping(services);

  let isClosing = false;
  const app = createApp(services, db, () => isClosing);
  // Koa's own console output is off: the errors middleware has seen everything that matters.
  app.silent = true;
  const handle = app.callback();
  const server = createServer(
    { keepAliveTimeout: 65_000, requestTimeout: 300_000, noDelay: true, IncomingMessage: UpgradableRequest },
    handle,
  );
  routeUpgrades(server, handle);
  routeExpectations(server, handle);
  answerClientErrors(server, services);
  services.connections.watch(server);
  const unused = unusedConnections(server);
  const metrics = config.metricsPort === undefined ? undefined : metricsServer(config.metricsToken, services.scrapes);
  if (metrics !== undefined) await listen(metrics, config.metricsPort as number, config, 'METRICS_PORT');
  await listen(server, config.port, config);
  const stopReloading = reloadOnHangup({ log, apply: (changed) => services.catalogue.replace(changed) });
  log.info({ host: config.host, port: config.port, cluster: redis.isCluster }, 'listening');
  const notice = everyAddressNotice(config);
  if (notice !== undefined) log.info(notice);
  process.send?.({ type: 'listening', url: services.baseUrl });

  closeOnSignal({
    log,
    flush,
    timeoutMs: config.shutdownMs,
    faults: createFaultCounter(services.registry),
    close: async (signal) => {
      isClosing = true;
      stopReloading();
      await drain(server, unused, services, signal);
      sweeper.close();
      await watch.close();
      await ledger.close();
      clearInterval(housekeeping);
      inbox.close();
      services.readers.close();
      services.load.close();
      metrics?.close();
      services.connections.close();
      services.clock.close();
      claim.close();
      services.blobs.close();
      services.delivered.close();
      await services.largeBodies.close();
      await Promise.all([...services.queues.values()].map((queue) => queue.close()));
      await services.mailer?.close();
      await services.callers.close();
      await services.refused.close();
      await redis.close();
      await db.destroy();
    },
  });
}

/** Connections on which no request has come yet. Node does not count them as idle, and they would hold up its end. */
function unusedConnections(server: Server): ReadonlySet<Socket> {
  const unused = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    unused.add(socket);
    socket.once('close', () => unused.delete(socket));
  });
  server.on('request', ({ socket }) => unused.delete(socket));
  server.on('upgrade', ({ socket }) => unused.delete(socket));
  return unused;
}

/** Stops accepting, lets running requests finish until the signal, then hands the rest over. */
async function drain(
  server: Server,
  unused: ReadonlySet<Socket>,
  services: Services,
  signal: AbortSignal,
): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  server.closeIdleConnections();
  services.handover.drain();
  const onAbort = (): void => services.handover.handOver();
  signal.addEventListener('abort', onAbort, { once: true });
  // Connections that were busy at the first call become idle one by one.
  const idle = setInterval(() => {
    server.closeIdleConnections();
    for (const socket of unused) socket.destroy();
  }, 100);
  const late = new Promise<void>((resolve) => {
    signal.addEventListener('abort', () => setTimeout(resolve, 2000), { once: true });
  });
  await Promise.race([closed, late]);
  clearInterval(idle);
  server.closeAllConnections();
  // Their connections are closed, but jobs whose callers have just left may still be on their way to an end.
  for (let waited = 0; services.handover.size > 0 && waited < 2000; waited += 20) {
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

start().catch((error) => {
  const isExpected = error instanceof ConfigError;
  process.stderr.write(`${isExpected ? error.message : error.stack}\n`);
  process.exit(1);
});
