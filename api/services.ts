import { Blobs } from '../shared/blobs/blobs.ts';
import type { Capability } from '../shared/capabilities/capability.ts';
import { type Catalogue, createCatalogue } from '../shared/catalogue/catalogue.ts';
import type { Config } from '../shared/config/config.ts';
import { ownBaseUrls } from '../shared/config/own-addresses.ts';
import type { Database } from '../shared/database/database.ts';
import type { Secrets } from '../shared/database/secrets.ts';
import { AccountBandwidth } from '../shared/fairness/account-bandwidth.ts';
import { newProcessId } from '../shared/ids.ts';
import { readerOf } from '../shared/jobs/inbox.ts';
import type { EndJobContext } from '../shared/jobs/settlement/end-job.ts';
import { QueueShards } from '../shared/queue/queue-shards.ts';
import { openQueues, queueOf, type ShardedQueue } from '../shared/queue/sharded-queue.ts';
import { batchWhenBusy, clusterBusyMs } from '../shared/redis/command-batcher.ts';
import type { RedisClient, RedisHandle } from '../shared/redis/redis.ts';
import { RedisClock } from '../shared/redis/redis-clock.ts';
import type { Closers } from '../shared/runtime/closers.ts';
import type { Logger } from '../shared/runtime/log.ts';
import {
  type ApiMetrics,
  createApiMetrics,
  createPacedFrames,
  createRegistry,
  type Registry,
  startAtZero,
} from '../shared/runtime/metrics.ts';
import { Scrapes } from '../shared/runtime/metrics-access.ts';
import { openTracer } from '../shared/tracing/open-tracer.ts';
import type { Tracer } from '../shared/tracing/tracer.ts';
import { AccountLoader } from './admission/account-loader.ts';
import { PayingKeys } from './admission/ask-admission.ts';
import { BodyGate } from './admission/body-gate.ts';
import { LoadGauge } from './admission/load-gauge.ts';
import { CallerDirectory } from './auth/authenticate.ts';
import { BodyShares } from './bounds/body-shares.ts';
import { BusyLoop } from './bounds/busy-loop.ts';
import { Connections, cutReasons } from './bounds/connections.ts';
import { DiskFloor } from './bounds/disk-floor.ts';
import { FairReads } from './bounds/fair-reads.ts';
import { keysPerAccount, SocketShares } from './bounds/socket-shares.ts';
import { BaseUrls } from './http/request-address.ts';
import { ForwardedHeaders } from './http/trusted-proxies.ts';
import { AcceptedJobs } from './ledger/accepted-jobs.ts';
import type { DatabaseHealth } from './ledger/database-health.ts';
import type { RedisWatch } from './ledger/redis-watch.ts';
import { StoredJobs } from './ledger/stored-jobs.ts';
import { CacheHits } from './ledger/usage/cache-hits.ts';
import { Mailer } from './management/mail/mailer.ts';
import { AttemptLimits } from './management/sign-in/attempt-limits.ts';
import { KnownDevices } from './management/sign-in/known-devices.ts';
import { UserSessions } from './management/sign-in/user-sessions.ts';
import { LargeBodies } from './pipeline/large-bodies/large-bodies.ts';
import { RefusedRequests } from './refused-requests/refused-requests.ts';
import { AnswerReaders } from './replies/answer-readers.ts';
import { Handover } from './replies/client-connection.ts';
import { LeftJobs } from './replies/left-jobs.ts';
import { DeliveredAnswers } from './replies/open-reply.ts';
import { SharedJobs } from './replies/shared/shared-jobs.ts';
import { ResultLinks } from './results/result-links.ts';

/** Everything that main.ts opens. Only route tables take all of it; other modules declare their own dependencies. */
export interface Services extends EndJobContext {
  readonly config: Config;
  /** This process's name on Redis channels. */
  readonly processId: string;
  readonly redis: RedisClient;
  /** Redis's time, by which everything shared between processes is measured. */
  readonly clock: RedisClock;
  readonly queues: ReadonlyMap<Capability, ShardedQueue>;
  readonly shards: QueueShards;
  readonly load: LoadGauge;
  readonly payingKeys: PayingKeys;
  readonly accounts: AccountLoader;
  readonly readers: AnswerReaders;
  readonly delivered: DeliveredAnswers;
  readonly leftJobs: LeftJobs;
  readonly sharedJobs: SharedJobs;
  readonly refused: RefusedRequests;
  readonly acceptedJobs: AcceptedJobs;
  readonly cacheHits: CacheHits;
  readonly storedJobs: StoredJobs;
  readonly blobs: Blobs;
  readonly resultLinks: ResultLinks;
  readonly callers: CallerDirectory;
  /** The users signed in to the console. */
  readonly sessions: UserSessions;
  readonly attempts: AttemptLimits;
  /** Undefined if no mail is sent. */
  readonly mailer: Mailer | undefined;
  /** Browsers with earlier sign-ins of users. */
  readonly devices: KnownDevices;
  readonly catalogue: Catalogue;
  readonly largeBodies: LargeBodies;
  /** Memory used by request bodies. */
  readonly bodies: BodyShares;
  /** Memory used by the conversations that response sockets can continue without a store. */
  readonly conversations: BodyShares;
  /** Disk space used by the files of unfinished forms. */
  readonly uploads: BodyShares;
  readonly bodyGate: BodyGate;
  readonly busyLoop: BusyLoop;
  readonly disk: DiskFloor;
  /** Shares the database between accounts that read reports, lists and balances. */
  readonly fairReads: FairReads;
  readonly sockets: SocketShares;
  readonly connections: Connections;
  readonly database: DatabaseHealth;
  readonly watch: RedisWatch;
  readonly metrics: ApiMetrics;
  readonly registry: Registry;
  readonly scrapes: Scrapes;
  readonly log: Logger;
  /** Undefined if nothing is traced. */
  readonly tracer: Tracer | undefined;
  /** Running requests, to be released when the process stops. */
  readonly handover: Handover;
  /** The main base URL, without a trailing slash. Links in a response have the request's own: see `baseUrls`. */
  readonly baseUrl: string;
  readonly baseUrls: BaseUrls;
  /** Facts from trusted proxies: `clientAddress` is the caller's address. */
  readonly forwarded: ForwardedHeaders;
}

/** Requests that an API key may be sending at a time, however few unfinished ones it may have. */
const minBodies = 64;

/** What the services are opened with. */
export interface ProcessContext {
  readonly config: Config;
  readonly redis: RedisHandle;
  readonly db: Database;
  readonly database: DatabaseHealth;
  readonly secrets: Secrets;
  readonly watch: RedisWatch;
  readonly log: Logger;
}

/** Opens the services. @param closers closes what of them needs it, in reverse */
export async function openServices(context: ProcessContext, closers: Closers): Promise<Services> {
  const { config, redis, db, database, secrets, watch, log } = context;
  const shards = closers.use(await QueueShards.open(config, redis, log));
  const queues = openQueues(redis.client, shards, closers);
  const queue = queueOf(queues);
  const clock = closers.use(await RedisClock.open(redis.client, log));
  const blobs = closers.use(await Blobs.open(config.dataDir, config.bucket, () => clock.later()));
  const forwarded = new ForwardedHeaders(config.trustedProxies);
  const baseUrls = new BaseUrls(ownBaseUrls(config), forwarded);
  const registry = createRegistry('api', redis.client, { isTraced: config.tracing !== undefined });
  const metrics = createApiMetrics(registry);
  const load = closers.use(new LoadGauge(redis.client, queues, config));
  const disk = new DiskFloor(config.dataDir, config.diskFloorBytes);
  await Promise.all([load.refresh(), disk.refresh()]);
  const accounts = new AccountLoader(db, redis.client, clock);
  const callers = closers.use(new CallerDirectory({ ...config, db, redis: redis.client, log, watch, clock }));
  const catalogue = createCatalogue(config);
  const bodies = Math.max(minBodies, config.keyConcurrency);
  const mailer = config.mail === undefined ? undefined : closers.use(new Mailer(config.mail, log));
  const { all, origins } = baseUrls;
  const sessionSecret = (): Buffer => secrets.get('sessions');
  const attempts = new AttemptLimits(redis.client);
  const tracer = await openTracer(config.tracing, 'api', log);
  if (tracer !== undefined) closers.use(tracer);
  const handover = new Handover();
  // On one Redis what comes while the write before is unanswered is batched, which is about as much.
  if (redis.isCluster) batchWhenBusy(redis.client, handover, clusterBusyMs);
  const processId = newProcessId('api');
  const own = { redis: redis.client, isCluster: redis.isCluster, processId, clock, blobs, queue, log };
  return {
    config,
    ...own,
    queues,
    shards,
    load,
    payingKeys: new PayingKeys(),
    accounts,
    readers: closers.use(openReaders(own, createPacedFrames(registry), log)),
    delivered: closers.use(new DeliveredAnswers(own, log)),
    leftJobs: new LeftJobs(own),
    sharedJobs: new SharedJobs(own),
    refused: closers.use(new RefusedRequests(redis.client, log)),
    cacheHits: closers.use(new CacheHits({ db, log })),
    acceptedJobs: new AcceptedJobs(db, config.bodyRetentionMs, log),
    storedJobs: new StoredJobs({ db, redis: redis.client, blobs }, config.bodyRetentionMs),
    resultLinks: new ResultLinks(() => secrets.get('result-links'), clock),
    callers,
    sessions: new UserSessions({ db, config, log, mailer, attempts, secret: sessionSecret, baseUrls: all, origins }),
    mailer,
    devices: new KnownDevices(sessionSecret),
    attempts,
    catalogue,
    largeBodies: closers.use(new LargeBodies()),
    bodies: new BodyShares({ bytes: config.bodyBytes, bodies, what: 'requests' }),
    conversations: openConversations(config),
    uploads: new BodyShares({ bytes: 2 * config.accountUploadBytes, bodies, what: 'uploads' }),
    busyLoop: closers.use(new BusyLoop(log)),
    bodyGate: new BodyGate({ redis: redis.client, clock, callers, accounts, catalogue, config }),
    disk,
    fairReads: new FairReads(config),
    sockets: new SocketShares(config.keySockets),
    connections: closers.use(openConnections(config, forwarded, metrics, log)),
    database,
    watch,
    metrics,
    registry,
    scrapes: new Scrapes(registry),
    tracer,
    handover,
    baseUrl: baseUrls.main,
    baseUrls,
    forwarded,
  };
}

/** What an account may read of its answers' logs beside other accounts, in characters a second. */
const replayBandwidth = 32 * 1024 * 1024;

/** As many bytes as request bodies may have; how many there are is bounded with their sockets. */
function openReaders(
  { redis, isCluster, blobs, processId }: Pick<Services, 'redis' | 'isCluster' | 'blobs' | 'processId'>,
  onPaced: () => void,
  log: Logger,
): AnswerReaders {
  const bandwidth = new AccountBandwidth(replayBandwidth, onPaced);
  return new AnswerReaders({ redis, blobs, bandwidth, log, readerId: isCluster ? undefined : readerOf(processId) });
}

function openConversations({ bodyBytes, keySockets }: Config): BodyShares {
  return new BodyShares({ bytes: bodyBytes, bodies: keysPerAccount * keySockets, what: 'conversations' });
}

function openConnections(config: Config, forwarded: ForwardedHeaders, metrics: ApiMetrics, log: Logger): Connections {
  const isShared = (address: string): boolean => forwarded.isShared(address);
  startAtZero(metrics.closedConnections, 'reason', cutReasons);
  return new Connections({ ...config, isShared }, log, (reason) => metrics.closedConnections.inc({ reason }));
}
