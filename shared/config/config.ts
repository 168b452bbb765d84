import { resolve } from 'node:path';
import { z } from 'zod';
import { type BucketSettings, bucketSettings, readBucketSettings } from '../blobs/bucket-settings.ts';
import type { Capability } from '../capabilities/capability.ts';
import { type AccountSettings, accountSettings, readAccountSettings } from './account-settings.ts';
import { type BoundsSettings, boundsSettings, readBoundsSettings } from './bounds-settings.ts';
import { ConfigError, headerSecret, parseSettings, refuseUnmeant } from './config-error.ts';
import { type DatabaseUse, databaseSettings, readDatabaseSettings } from './database-settings.ts';
import { limitBounds } from './file/limit-bounds.ts';
import { limitSettings } from './file/limit-settings.ts';
import { readConfiguration } from './file/read-configuration.ts';
import {
  type DefaultModels,
  defaultModels,
  isLoopback,
  listenAddress,
  publicUrls,
  type TrustedProxies,
  trustedProxies,
} from './ingress-settings.ts';
import { type ModelSettings, readModelSettings } from './model-settings.ts';
import { type ProcessSettings, processSettings, readProcessSettings } from './process-settings.ts';
import { type ProxySettings, proxySettings, readProxySettings, withLowerCaseProxies } from './proxy-settings.ts';
import { type RedisSettings, readRedisSettings, redisSettings } from './redis-settings.ts';
import { type SettingNotice, settingNotices } from './setting-notices.ts';
import { readTracingSettings, type TracingSettings, tracingSettings } from './tracing-settings.ts';
import { address, refuseOwnVendors, sandboxSettings, vendorSettingNames } from './vendor-settings.ts';

export { ConfigError };

const whole = (min: number, max: number) => z.coerce.number().int().min(min).max(max);
/** `https://a.example, https://b.example`, or `*`. */
const origins = z
  .string()
  .transform((list) => list.split(',').map((origin) => origin.trim()))
  .pipe(
    z.array(
      // A star in a name would be taken for that name: it stands for no other.
      z.union([z.literal('*'), address.refine((url) => !url.includes('*')).transform((url) => new URL(url).origin)], {
        error: 'must be *, or origins such as https://a.example with commas between them',
      }),
    ),
  );

const settings = z.object({
  PORT: whole(0, 65_535).default(8080),
  HOST: listenAddress.default('127.0.0.1'),
  PUBLIC_URL: publicUrls.default([]),
  TRUST_PROXY: trustedProxies.default(0),
  // Another folder would be a new, empty database.
  SLUICE_DATA_DIR: z
    .string()
    .regex(/^\S(.*\S)?$/, 'must not begin or end with white space')
    .default('./data'),
  ...redisSettings,
  ...bucketSettings,
  SLUICE_SECRET: z.string().min(32, 'must have at least 32 characters').optional(),
  SLUICE_BOOTSTRAP_KEY: headerSecret(20).optional(),
  // The former name of SLUICE_BOOTSTRAP_KEY, before clients were found to use it, too.
  SLUICE_API_KEY: headerSecret(20).optional(),
  SLUICE_CONFIG: z.string().optional(),
  SLUICE_REGION: z.string().trim().optional(),
  SLUICE_CHECK_KEYS: z.enum(['on', 'off']).default('on'),
  SLUICE_SANDBOX: z.enum(sandboxSettings).default('auto'),
  LOG_LEVEL: z.enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']).default('info'),
  WORKER_PORT: whole(0, 65_535).optional(),
  SLUICE_QUEUE_LIMIT: whole(...limitBounds.queue_limit).default(20_000),
  SLUICE_QUEUE_SHARDS: whole(1, 64).optional(),
  SLUICE_QUEUE_WAIT_SECONDS: whole(...limitBounds.queue_wait_seconds).default(60),
  SLUICE_FLEX_WAIT_SECONDS: whole(1, 86_400).default(300),
  SLUICE_PRIORITY_SHARE: z.coerce.number().min(0.1).max(1).default(0.8),
  SLUICE_KEY_CONCURRENCY: whole(...limitBounds.key_concurrency).default(10_000),
  SLUICE_DEADLINE_SECONDS: whole(...limitBounds.deadline_seconds).default(600),
  SLUICE_BACKGROUND_DEADLINE_SECONDS: whole(...limitBounds.background_deadline_seconds).default(7_200),
  SLUICE_VENDOR_SILENCE_SECONDS: whole(...limitBounds.vendor_silence_seconds).default(300),
  SLUICE_RESULT_SECONDS: whole(60, 2_592_000).default(86_400),
  SLUICE_RETENTION_DAYS: whole(1, 36_500).default(30),
  SLUICE_LAME_DUCK_SECONDS: whole(0, 3_600).default(10),
  SLUICE_SHUTDOWN_SECONDS: whole(0, 86_400).optional(),
  SLUICE_OUTBOX_MEGABYTES: whole(1, 1_000_000).default(64),
  SLUICE_SPOOL_MEGABYTES: whole(0, 1_000_000_000).default(4096),
  SLUICE_SOCKET_IDLE_SECONDS: whole(1, 3_600).default(600),
  SLUICE_DEFAULT_MODELS: defaultModels.default({}),
  CORS_ORIGINS: origins.default([]),
  WORKER_CONCURRENCY_CHAT: whole(1, 100_000).default(500),
  WORKER_CONCURRENCY_EMBEDDING: whole(1, 100_000).default(100),
  WORKER_CONCURRENCY_IMAGE: whole(1, 100_000).default(50),
  WORKER_CONCURRENCY_TRANSCRIPTION: whole(1, 100_000).default(50),
  WORKER_CONCURRENCY_SPEECH: whole(1, 100_000).default(50),
  WORKER_CONCURRENCY_VIDEO: whole(1, 100_000).default(50),
  WORKER_STREAM_MIB: whole(1, 100_000).default(8),
  ...accountSettings,
  ...boundsSettings,
  ...processSettings,
  ...databaseSettings,
  ...tracingSettings,
  ...proxySettings,
});

/** The names of all settings. */
export const settingNames: readonly string[] = [...Object.keys(settings.shape), ...vendorSettingNames];

/** Settings as used by the code. Times are milliseconds. */
export interface Config
  extends AccountSettings,
    BoundsSettings,
    DatabaseUse,
    ModelSettings,
    ProcessSettings,
    RedisSettings {
  readonly host: string;
  readonly port: number;
  /** Base URLs in links, the main one first; if empty, links are built from host and port. */
  readonly publicUrls: readonly string[];
  /** Proxies whose forwarding headers are trusted. */
  readonly trustedProxies: TrustedProxies;
  /** Absolute folder of the database, the embedded Redis and the blobs. */
  readonly dataDir: string;
  /** A Postgres database; undefined: an SQLite file in the data folder. May contain a password. */
  readonly databaseUrl: string | undefined;
  /** The source of the gateway's own secrets; undefined: they are stored with the data. */
  readonly secret: string | undefined;
  /** The bucket of the blobs; undefined: they are stored in the data folder. */
  readonly bucket: BucketSettings | undefined;
  /** Becomes a key of the first account at start. */
  readonly apiKey: string | undefined;
  readonly logLevel: string;
  /** Where traces go; undefined: there are none. */
  readonly tracing: TracingSettings | undefined;
  /** The proxy to vendors; undefined: they are called directly. */
  readonly proxy: ProxySettings | undefined;
  /** Port of a worker's own /healthz, /readyz and /metrics; undefined: none. */
  readonly workerPort: number | undefined;
  /** Default models for requests that name none, if none is required. */
  readonly defaultModels: DefaultModels;
  /** This process's region, as routes name theirs; undefined: none. */
  readonly region: string | undefined;
  /** Whether a worker checks at its start whether each vendor accepts the key. */
  readonly checksKeys: boolean;
  /** Maximum number of concurrent jobs per worker process, per capability. */
  readonly workerConcurrency: Readonly<Record<Capability, number>>;
  /** What large frames of an account's streams may take of a worker that others use too, in characters a second. */
  readonly streamBandwidth: number;
  /** Maximum number of waiting jobs in a queue; further ones get a 503. */
  readonly queueLimit: number;
  /** Shards of each capability's queue; undefined: the default for the kind of Redis. */
  readonly queueShards: number | undefined;
  /** How long a waiting caller's job may stay queued before it gets a 503. */
  readonly queueWaitMs: number;
  /** How long a job of low priority waits for spare capacity before it waits as others do. */
  readonly flexWaitMs: number;
  /** Share of the claims that jobs of high priority may have while others wait. */
  readonly highShare: number;
  /** Maximum number of unfinished jobs of an API key without its own limit. */
  readonly keyConcurrency: number;
  /** A job's deadline if the caller sets none. */
  readonly deadlineMs: number;
  /** The deadline of background work: videos, and responses made with `background`. */
  readonly backgroundDeadlineMs: number;
  /** How long a vendor may stay silent inside an answer. */
  readonly vendorSilenceMs: number;
  /** How long answers of asynchronous and keyed jobs stay readable. */
  readonly resultMs: number;
  /** How long the database keeps the requests and answers of asynchronous and keyed jobs. */
  readonly bodyRetentionMs: number;
  /** How long an api still takes requests after SIGTERM, while it reports that it is not ready. */
  readonly lameDuckMs: number;
  /** How long running work may continue after that: by default as long as a waiting caller's request may take. */
  readonly shutdownMs: number;
  /** Maximum size in Redis, in bytes, of data waiting for an unavailable database; more goes to the spool. */
  readonly outboxBytes: number;
  /** Maximum size of an api process's spool, in bytes; 0: no spool. */
  readonly spoolBytes: number;
  /** How long a response socket stays open without a message while idle. */
  readonly socketIdleMs: number;
  /** Origins of other sites whose pages may use the gateway; `*`: all. */
  readonly corsOrigins: readonly string[];
}

/**
 * Reads the settings: the only reader of `process.env`. An empty value counts as unset; one of spaces, in quotes or
 * with the name of a variable is a mistake.
 * @param defaults of this program, which replace the usual ones
 * @param isAgain whether they were read before
 * @throws ConfigError naming the setting and its requirement.
 */
export function readConfig(
  environment: NodeJS.ProcessEnv = process.env,
  defaults: Readonly<Record<string, string>> = {},
  isAgain = false,
): Config {
  const set = Object.entries(environment).filter(([, value]) => value !== '');
  const given = { ...defaults, ...withLowerCaseProxies(Object.fromEntries(set)) };
  refuseUnmeant(settingNames, given);
  // If the new name is set, the old one is a client's own.
  if (given.SLUICE_BOOTSTRAP_KEY !== undefined) delete given.SLUICE_API_KEY;
  const path = given.SLUICE_CONFIG;
  const configuration = path === undefined ? undefined : readConfiguration(path, given, isAgain);
  // The environment takes precedence over the file.
  const env = parseSettings(settings, { ...(configuration && limitSettings(configuration.file)), ...given });
  const served = readModelSettings(configuration, given, env.SLUICE_SANDBOX);
  refuseOwnVendors(served.vendors, env.PUBLIC_URL);
  return {
    host: env.HOST,
    port: env.PORT,
    publicUrls: env.PUBLIC_URL,
    trustedProxies: env.TRUST_PROXY,
    dataDir: resolve(env.SLUICE_DATA_DIR),
    databaseUrl: env.DATABASE_URL,
    ...readRedisSettings(env),
    secret: env.SLUICE_SECRET,
    bucket: env.BLOBS_URL === undefined ? undefined : readBucket(env.BLOBS_URL, env),
    apiKey: env.SLUICE_BOOTSTRAP_KEY ?? env.SLUICE_API_KEY,
    logLevel: env.LOG_LEVEL,
    workerPort: env.WORKER_PORT,
    ...served,
    checksKeys: env.SLUICE_CHECK_KEYS === 'on',
    defaultModels: env.SLUICE_DEFAULT_MODELS,
    region: env.SLUICE_REGION,
    workerConcurrency: {
      chat: env.WORKER_CONCURRENCY_CHAT,
      embedding: env.WORKER_CONCURRENCY_EMBEDDING,
      image: env.WORKER_CONCURRENCY_IMAGE,
      transcription: env.WORKER_CONCURRENCY_TRANSCRIPTION,
      speech: env.WORKER_CONCURRENCY_SPEECH,
      video: env.WORKER_CONCURRENCY_VIDEO,
    },
    streamBandwidth: env.WORKER_STREAM_MIB * 1024 * 1024,
    queueLimit: env.SLUICE_QUEUE_LIMIT,
    queueShards: env.SLUICE_QUEUE_SHARDS,
    queueWaitMs: env.SLUICE_QUEUE_WAIT_SECONDS * 1000,
    flexWaitMs: env.SLUICE_FLEX_WAIT_SECONDS * 1000,
    highShare: env.SLUICE_PRIORITY_SHARE,
    keyConcurrency: env.SLUICE_KEY_CONCURRENCY,
    deadlineMs: env.SLUICE_DEADLINE_SECONDS * 1000,
    backgroundDeadlineMs: env.SLUICE_BACKGROUND_DEADLINE_SECONDS * 1000,
    vendorSilenceMs: env.SLUICE_VENDOR_SILENCE_SECONDS * 1000,
    resultMs: env.SLUICE_RESULT_SECONDS * 1000,
    bodyRetentionMs: env.SLUICE_RETENTION_DAYS * 86_400_000,
    lameDuckMs: env.SLUICE_LAME_DUCK_SECONDS * 1000,
    shutdownMs: (env.SLUICE_SHUTDOWN_SECONDS ?? env.SLUICE_DEADLINE_SECONDS) * 1000,
    outboxBytes: env.SLUICE_OUTBOX_MEGABYTES * 1_000_000,
    spoolBytes: env.SLUICE_SPOOL_MEGABYTES * 1_000_000,
    socketIdleMs: env.SLUICE_SOCKET_IDLE_SECONDS * 1000,
    corsOrigins: env.CORS_ORIGINS,
    ...readAccountSettings(env, isLocal(env)),
    ...readBoundsSettings(env),
    ...readProcessSettings(env),
    ...readDatabaseSettings(env),
    tracing: readTracingSettings(env),
    proxy: readProxySettings(env),
  };
}

/** Whether only this machine reaches the gateway: it listens on loopback only, and no proxy or public URL is configured. */
function isLocal({ HOST: host, PUBLIC_URL: urls, TRUST_PROXY: proxies }: z.infer<typeof settings>): boolean {
  return isLoopback(host) && proxies === 0 && urls.every((url) => isLoopback(new URL(url).hostname));
}

/** Notices about names in the environment, whatever their values: unknown names that resemble settings, and deprecated ones. */
export function readSettingNotices(environment: NodeJS.ProcessEnv = process.env): readonly SettingNotice[] {
  return settingNotices(environment, settingNames);
}

function readBucket(url: string, env: z.infer<typeof settings>): BucketSettings {
  try {
    return readBucketSettings(url, env);
  } catch (error) {
    throw new ConfigError(`The setting BLOBS_URL cannot be used: ${(error as Error).message}.`);
  }
}

/** The environment of a child process: this one's, with some settings replaced. */
export function childEnvironment(settings: Record<string, string>): NodeJS.ProcessEnv {
  return { ...process.env, ...settings };
}

/** Adds what a file sets to the environment. What the shell sets stays. */
export function addToEnvironment(settings: NodeJS.Dict<string>): void {
  for (const [name, value] of Object.entries(settings)) process.env[name] ??= value;
}
