import { totalmem } from 'node:os';
import { z } from 'zod';
import { headerSecret } from './config-error.ts';

const mebibyte = 1024 * 1024;
const whole = (min: number, max: number) => z.coerce.number().int().min(min).max(max);

/** Settings that limit callers' use of a process, as environment variables. */
export const boundsSettings = {
  SLUICE_ACCOUNT_QUEUE_SHARE: z.coerce.number().min(0.001).max(1).default(0.1),
  SLUICE_BODIES_MIB: whole(1, 1_000_000).optional(),
  SLUICE_ACCOUNT_UPLOADS_MIB: whole(1, 1_000_000).default(2048),
  SLUICE_DISK_FLOOR_MIB: whole(0, 10_000_000).default(512),
  SLUICE_KEY_SOCKETS: whole(1, 1_000_000).default(5000),
  SLUICE_MAX_CONNECTIONS: whole(1, 1_000_000).default(20_000),
  SLUICE_ADDRESS_CONNECTIONS: whole(1, 1_000_000).default(10_000),
  SLUICE_WRONG_KEYS_PER_MINUTE: whole(1, 1_000_000).default(60),
  SLUICE_UNREAD_SECONDS: whole(1, 3600).default(60),
  SLUICE_UNSENT_MIB: whole(1, 1_000_000).optional(),
  SLUICE_REDIS_MAXMEMORY: z
    .string()
    .regex(/^[1-9]\d*(mb|gb)$/i, 'expected megabytes or gigabytes, such as 512mb or 2gb')
    .optional(),
  METRICS_PORT: whole(0, 65_535).optional(),
  METRICS_TOKEN: headerSecret(16).optional(),
};

/** Limits of callers' use of one process, and access to its metrics. Sizes are bytes. */
export interface BoundsSettings {
  /** Share of a queue's free slots that one account may fill while others wait; alone it leaves that share free. */
  readonly accountQueueShare: number;
  /** Request bodies in memory, of all callers. An account may use half of it, an API key a quarter. */
  readonly bodyBytes: number;
  /** Files of an account's unfinished forms. */
  readonly accountUploadBytes: number;
  /** Free space in the data folder below which bodies to be stored there are refused. */
  readonly diskFloorBytes: number;
  /** WebSockets and job watchers per API key. */
  readonly keySockets: number;
  readonly maxConnections: number;
  /** Connections per address, except this machine's and trusted proxies'. */
  readonly addressConnections: number;
  /** Unknown API keys that an address may try before its further ones are refused unseen. */
  readonly wrongKeysPerMinute: number;
  /** How long a client may read none of the bytes sent to it. */
  readonly unreadMs: number;
  /** Maximum unsent data for all clients together. */
  readonly unsentBytes: number;
  /** `maxmemory` of the Redis started by `npm start`, as in redis.conf; undefined: a share of the machine's memory. */
  readonly redisMaxMemory: string | undefined;
  /** A port for /metrics only; undefined: it is served on the main port. */
  readonly metricsPort: number | undefined;
  /** The bearer token for /metrics; undefined: only this machine may read it. */
  readonly metricsToken: string | undefined;
}

/** The memory of this machine, or of the container. No limit is 0, or more than the machine has. */
function ownMemory(): number {
  return Math.min(process.constrainedMemory() || Number.POSITIVE_INFINITY, totalmem());
}

/** An eighth of the memory, in MiB, within bounds: bodies, conversations and unsent answers together take at most three of them. */
function eighthOf(memory: number, least: number, most: number): number {
  return Math.min(most, Math.max(least, Math.floor(memory / 8 / mebibyte)));
}

/**
 * Converts the bounds to the units of the code.
 * @param memory bytes that this process may use, for the bounds that are not set
 */
export function readBoundsSettings(
  env: z.output<z.ZodObject<typeof boundsSettings>>,
  memory: number = ownMemory(),
): BoundsSettings {
  // With less, a key could not send one of the largest bodies.
  const bodies = env.SLUICE_BODIES_MIB ?? eighthOf(memory, 128, 1024);
  const unsent = env.SLUICE_UNSENT_MIB ?? eighthOf(memory, 64, 512);
  return {
    accountQueueShare: env.SLUICE_ACCOUNT_QUEUE_SHARE,
    bodyBytes: bodies * mebibyte,
    accountUploadBytes: env.SLUICE_ACCOUNT_UPLOADS_MIB * mebibyte,
    diskFloorBytes: env.SLUICE_DISK_FLOOR_MIB * mebibyte,
    keySockets: env.SLUICE_KEY_SOCKETS,
    maxConnections: env.SLUICE_MAX_CONNECTIONS,
    addressConnections: env.SLUICE_ADDRESS_CONNECTIONS,
    wrongKeysPerMinute: env.SLUICE_WRONG_KEYS_PER_MINUTE,
    unreadMs: env.SLUICE_UNREAD_SECONDS * 1000,
    unsentBytes: unsent * mebibyte,
    redisMaxMemory: env.SLUICE_REDIS_MAXMEMORY,
    metricsPort: env.METRICS_PORT,
    metricsToken: env.METRICS_TOKEN,
  };
}
