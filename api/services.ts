import type { Blobs } from '../shared/blobs/blobs.ts';
import type { Capability } from '../shared/capabilities/capability.ts';
import type { Catalogue } from '../shared/catalogue/catalogue.ts';
import type { Config } from '../shared/config/config.ts';
import type { EndJobContext } from '../shared/jobs/settlement/end-job.ts';
import type { CapabilityQueue } from '../shared/queue/queue.ts';
import type { RedisClient } from '../shared/redis/redis.ts';
import type { RedisClock } from '../shared/redis/redis-clock.ts';
import type { Logger } from '../shared/runtime/log.ts';
import type { ApiMetrics, Registry } from '../shared/runtime/metrics.ts';
import type { Scrapes } from '../shared/runtime/metrics-access.ts';
import type { AccountLoader } from './admission/account-loader.ts';
import type { BodyGate } from './admission/body-gate.ts';
import type { LoadGauge } from './admission/load-gauge.ts';
import type { PayingKeys } from './admission/paying-keys.ts';
import type { CallerDirectory } from './auth/authenticate.ts';
import type { BodyShares } from './bounds/body-shares.ts';
import type { Connections } from './bounds/connections.ts';
import type { DiskFloor } from './bounds/disk-floor.ts';
import type { SocketShares } from './bounds/socket-shares.ts';
import type { BaseUrls } from './http/base-urls.ts';
import type { ForwardedHeaders } from './http/trusted-proxies.ts';
import type { AcceptedJobs } from './ledger/accepted-jobs.ts';
import type { StoredJobs } from './ledger/stored-jobs.ts';
import type { Mailer } from './management/mail/mailer.ts';
import type { AttemptLimits } from './management/sign-in/attempt-limits.ts';
import type { KnownDevices } from './management/sign-in/known-devices.ts';
import type { UserSessions } from './management/sign-in/user-sessions.ts';
import type { LargeBodies } from './pipeline/large-bodies.ts';
import type { RefusedRequests } from './refused-requests/refused-requests.ts';
import type { AnswerReaders } from './replies/answer-readers.ts';
import type { Handover } from './replies/client-connection.ts';
import type { DeliveredLogs } from './replies/delivered-logs.ts';
import type { ResultLinks } from './results/result-links.ts';

/** Everything that main.ts opens. Only route tables take all of it; other modules declare their own dependencies. */
export interface Services extends EndJobContext {
  readonly config: Config;
  /** This process's name on Redis channels. */
  readonly processId: string;
  readonly redis: RedisClient;
  /** Redis's time, which all that other processes look at goes by. */
  readonly clock: RedisClock;
  readonly queues: ReadonlyMap<Capability, CapabilityQueue>;
  readonly load: LoadGauge;
  readonly payingKeys: PayingKeys;
  readonly accounts: AccountLoader;
  readonly readers: AnswerReaders;
  readonly delivered: DeliveredLogs;
  readonly refused: RefusedRequests;
  readonly acceptedJobs: AcceptedJobs;
  readonly storedJobs: StoredJobs;
  readonly blobs: Blobs;
  readonly resultLinks: ResultLinks;
  readonly callers: CallerDirectory;
  /** Who is signed in to the console. */
  readonly sessions: UserSessions;
  readonly attempts: AttemptLimits;
  /** Undefined: nobody is sent a mail. */
  readonly mailer: Mailer | undefined;
  /** Browsers that users have signed in with before. */
  readonly devices: KnownDevices;
  readonly catalogue: Catalogue;
  readonly largeBodies: LargeBodies;
  /** What request bodies take of the memory. */
  readonly bodies: BodyShares;
  /** What the files of unfinished forms take of the disk. */
  readonly uploads: BodyShares;
  readonly bodyGate: BodyGate;
  readonly disk: DiskFloor;
  readonly sockets: SocketShares;
  readonly connections: Connections;
  readonly metrics: ApiMetrics;
  readonly registry: Registry;
  readonly scrapes: Scrapes;
  readonly log: Logger;
  /** Requests under way, to be let go when the process stops. */
  readonly handover: Handover;
  /** The main base URL, without a slash at the end. Links in an answer carry the one that was asked: see `baseUrls`. */
  readonly baseUrl: string;
  readonly baseUrls: BaseUrls;
  /** What trusted proxies say of requests: `clientAddress` is who called. */
  readonly forwarded: ForwardedHeaders;
}
