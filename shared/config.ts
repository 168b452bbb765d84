import { resolve } from 'node:path';
import { z } from 'zod';
import { type BucketSettings, readBucketSettings } from './blobs/bucket-settings.ts';
import type { Capability } from './capabilities/capability.ts';
import { type Dialect, type VendorRow, vendorRows } from './catalogue/vendors.ts';

/** A setting that cannot be used; the message is one sentence for the operator. Start-up prints it and exits with 1. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
}

const whole = (least: number, most: number) => z.coerce.number().int().min(least).max(most);
const address = z.url({ protocol: /^https?$/ }).transform((url) => url.replace(/\/+$/, ''));
/** `https://a.example, https://b.example`, or `*`. */
const origins = z
  .string()
  .transform((list) => list.split(',').map((origin) => origin.trim()))
  .pipe(z.array(z.union([z.literal('*'), address.transform((url) => new URL(url).origin)])));

const settings = z.object({
  PORT: whole(0, 65_535).default(8080),
  HOST: z.string().default('127.0.0.1'),
  PUBLIC_URL: address.optional(),
  SLUICE_DATA_DIR: z.string().default('./data'),
  REDIS_URL: z.string().optional(),
  BLOBS_URL: z.string().optional(),
  AWS_ACCESS_KEY_ID: z.string().optional(),
  AWS_SECRET_ACCESS_KEY: z.string().optional(),
  AWS_SESSION_TOKEN: z.string().optional(),
  AWS_REGION: z.string().optional(),
  SLUICE_API_KEY: z.string().min(20, 'must have at least 20 characters').optional(),
  SLUICE_SANDBOX: z.enum(['auto', 'on', 'off']).default('auto'),
  LOG_LEVEL: z.enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']).default('info'),
  WORKER_PORT: whole(0, 65_535).optional(),
  SLUICE_QUEUE_LIMIT: whole(1, 10_000_000).default(20_000),
  SLUICE_QUEUE_WAIT_SECONDS: whole(1, 86_400).default(60),
  SLUICE_KEY_CONCURRENCY: whole(1, 1_000_000).default(10_000),
  SLUICE_DEADLINE_SECONDS: whole(1, 86_400).default(600),
  SLUICE_BACKGROUND_DEADLINE_SECONDS: whole(1, 604_800).default(7_200),
  SLUICE_VENDOR_SILENCE_SECONDS: whole(1, 86_400).default(300),
  SLUICE_RESULT_SECONDS: whole(60, 2_592_000).default(86_400),
  SLUICE_RETENTION_DAYS: whole(1, 36_500).default(30),
  SLUICE_SHUTDOWN_SECONDS: whole(0, 3_600).default(30),
  SLUICE_SOCKET_IDLE_SECONDS: whole(1, 3_600).default(600),
  CORS_ORIGINS: origins.default([]),
  WORKER_CONCURRENCY_CHAT: whole(1, 100_000).default(500),
  WORKER_CONCURRENCY_EMBEDDING: whole(1, 100_000).default(100),
  WORKER_CONCURRENCY_IMAGE: whole(1, 100_000).default(50),
  WORKER_CONCURRENCY_TRANSCRIPTION: whole(1, 100_000).default(50),
  WORKER_CONCURRENCY_SPEECH: whole(1, 100_000).default(50),
  WORKER_CONCURRENCY_VIDEO: whole(1, 100_000).default(50),
});

/** `LM_STUDIO` of the vendor `lm-studio`. */
function settingName({ name }: VendorRow): string {
  return name.toUpperCase().replaceAll('-', '_');
}

/** `<VENDOR>_API_KEY` and `<VENDOR>_BASE_URL` of every vendor. */
const vendorSettings = z.object(
  Object.fromEntries(
    vendorRows.flatMap((row): [string, z.ZodOptional<z.ZodType<string>>][] => [
      [`${settingName(row)}_API_KEY`, z.string().optional()],
      [`${settingName(row)}_BASE_URL`, address.optional()],
    ]),
  ),
);

/** Settings as the rest of the code reads them. Times are milliseconds. */
export interface Config {
  readonly host: string;
  readonly port: number;
  /** The base URL in links; without it links are built from host and port. */
  readonly publicUrl: string | undefined;
  /** Absolute folder of the database, the embedded Redis and the blobs. */
  readonly dataDir: string;
  readonly redisUrl: string | undefined;
  /** The bucket of the blobs; undefined: they lie in the data folder. */
  readonly bucket: BucketSettings | undefined;
  /** This string becomes a key of the first account at start. */
  readonly apiKey: string | undefined;
  readonly logLevel: string;
  /** Port of a worker's own /healthz, /readyz and /metrics; undefined: none. */
  readonly workerPort: number | undefined;
  /** Vendors that are on, by their names, with what it takes to call them. */
  readonly vendors: Readonly<Record<string, VendorSettings>>;
  /** Whether the sandbox vendor is wanted: `SLUICE_SANDBOX` resolved against the vendor keys. */
  readonly sandbox: boolean;
  /** Jobs that one worker process runs at a time, per capability. */
  readonly workerConcurrency: Readonly<Record<Capability, number>>;
  /** Jobs that may wait in a queue before new ones are answered 503. */
  readonly queueLimit: number;
  /** How long a waiting caller's job may stay queued before it is answered 503. */
  readonly queueWaitMs: number;
  /** Unfinished jobs an API key may have where it has no limit of its own. */
  readonly keyConcurrency: number;
  /** A job's deadline where the caller sets none. */
  readonly deadlineMs: number;
  /** The deadline of background work: videos, and responses made with `background`. */
  readonly backgroundDeadlineMs: number;
  /** How long a vendor may stay silent inside an answer. */
  readonly vendorSilenceMs: number;
  /** How long the answers of asynchronous and keyed jobs stay readable. */
  readonly resultMs: number;
  /** How long the database keeps the requests and answers of asynchronous and keyed jobs. */
  readonly bodyRetentionMs: number;
  /** How long running work may go on after SIGTERM. */
  readonly shutdownMs: number;
  /** How long a response socket stays open without a message while nothing runs on it. */
  readonly socketIdleMs: number;
  /** Origins of other sites whose pages may use the gateway; `*`: all. */
  readonly corsOrigins: readonly string[];
}

export interface VendorSettings {
  readonly dialect: Dialect;
  /** Up to and with the version, without a slash at its end. */
  readonly baseUrl: string;
  readonly apiKey: string;
}

/**
 * Reads the settings: the only reader of `process.env`. An empty value counts as unset.
 * @throws ConfigError naming the setting and what it takes.
 */
export function readConfig(environment: NodeJS.ProcessEnv = process.env): Config {
  const given = Object.fromEntries(Object.entries(environment).filter(([, value]) => value !== ''));
  if (given.DATABASE_URL !== undefined) {
    throw new ConfigError('DATABASE_URL is set, but this version stores its data in SQLite only: unset it.');
  }
  const env = parse(settings, given);
  const vendorEnv = parse(vendorSettings, given);
  const hasVendorKey = vendorRows.some((row) => row.needsKey && vendorEnv[`${settingName(row)}_API_KEY`] !== undefined);
  const sandbox = env.SLUICE_SANDBOX === 'on' || (env.SLUICE_SANDBOX === 'auto' && !hasVendorKey);
  return {
    host: env.HOST,
    port: env.PORT,
    publicUrl: env.PUBLIC_URL,
    dataDir: resolve(env.SLUICE_DATA_DIR),
    redisUrl: env.REDIS_URL,
    bucket: env.BLOBS_URL === undefined ? undefined : readBucket(env.BLOBS_URL, env),
    apiKey: env.SLUICE_API_KEY,
    logLevel: env.LOG_LEVEL,
    workerPort: env.WORKER_PORT,
    vendors: readVendors(vendorEnv, sandbox),
    sandbox,
    workerConcurrency: {
      chat: env.WORKER_CONCURRENCY_CHAT,
      embedding: env.WORKER_CONCURRENCY_EMBEDDING,
      image: env.WORKER_CONCURRENCY_IMAGE,
      transcription: env.WORKER_CONCURRENCY_TRANSCRIPTION,
      speech: env.WORKER_CONCURRENCY_SPEECH,
      video: env.WORKER_CONCURRENCY_VIDEO,
    },
    queueLimit: env.SLUICE_QUEUE_LIMIT,
    queueWaitMs: env.SLUICE_QUEUE_WAIT_SECONDS * 1000,
    keyConcurrency: env.SLUICE_KEY_CONCURRENCY,
    deadlineMs: env.SLUICE_DEADLINE_SECONDS * 1000,
    backgroundDeadlineMs: env.SLUICE_BACKGROUND_DEADLINE_SECONDS * 1000,
    vendorSilenceMs: env.SLUICE_VENDOR_SILENCE_SECONDS * 1000,
    resultMs: env.SLUICE_RESULT_SECONDS * 1000,
    bodyRetentionMs: env.SLUICE_RETENTION_DAYS * 86_400_000,
    shutdownMs: env.SLUICE_SHUTDOWN_SECONDS * 1000,
    socketIdleMs: env.SLUICE_SOCKET_IDLE_SECONDS * 1000,
    corsOrigins: env.CORS_ORIGINS,
  };
}

/** @throws ConfigError */
function parse<Schema extends z.ZodType>(schema: Schema, given: Record<string, unknown>): z.infer<Schema> {
  const parsed = schema.safeParse(given);
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0];
  // The value itself is not shown: it may be a secret.
  throw new ConfigError(`The setting ${issue?.path.join('.')} cannot be used: ${issue?.message}.`);
}

/** The vendors that are on, in the order of their table. */
function readVendors(env: Readonly<Record<string, string | undefined>>, sandbox: boolean): Config['vendors'] {
  const vendors: Record<string, VendorSettings> = {};
  for (const row of vendorRows) {
    const { name, dialect, needsKey } = row;
    const apiKey = env[`${settingName(row)}_API_KEY`];
    const baseUrl = env[`${settingName(row)}_BASE_URL`];
    const isOn = needsKey ? apiKey !== undefined : baseUrl !== undefined && (name !== 'sandbox' || sandbox);
    // Who takes callers without a key takes them with any.
    if (isOn) vendors[name] = { dialect, baseUrl: baseUrl ?? row.baseUrl, apiKey: apiKey ?? 'none' };
  }
  return vendors;
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
