import { z } from 'zod';
import { parseRedisUrl } from '../redis/redis-address.ts';
import { ConfigError } from './config-error.ts';

/** Settings that name the Redis and how it is reached, as environment variables. */
export const redisSettings = {
  REDIS_URL: z.string().optional(),
  REDIS_TLS_CA_CERT_FILE: z.string().optional(),
  REDIS_TLS_CERT_FILE: z.string().optional(),
  REDIS_TLS_KEY_FILE: z.string().optional(),
  REDIS_TLS_SERVER_NAME: z.string().optional(),
  SLUICE_REDIS_EVICTION: z.enum(['refused', 'allowed']).default('refused'),
};

/** Paths of PEM files, and a name, for TLS to Redis. */
export interface RedisTlsSettings {
  /** Certificates of the authorities that are trusted instead of the public ones. */
  readonly caFile?: string | undefined;
  /** The client's certificate, and its key. */
  readonly certFile?: string | undefined;
  readonly keyFile?: string | undefined;
  /** The name that certificates must be for, instead of the host of the connection. */
  readonly serverName?: string | undefined;
}

/** The Redis to use. */
export interface RedisSettings {
  /** Undefined: `npm start` runs its own. May contain passwords. */
  readonly redisUrl: string | undefined;
  readonly redisTls: RedisTlsSettings;
  /** Whether a Redis that may evict keys is used, though it may lose accepted jobs. */
  readonly allowsEviction: boolean;
}

/**
 * Reads the settings of Redis.
 * @throws ConfigError for an address that cannot be used, or TLS settings without TLS.
 */
export function readRedisSettings(env: z.output<z.ZodObject<typeof redisSettings>>): RedisSettings {
  const files = ['REDIS_TLS_CA_CERT_FILE', 'REDIS_TLS_CERT_FILE', 'REDIS_TLS_KEY_FILE'] as const;
  const given = [...files, 'REDIS_TLS_SERVER_NAME' as const].find((name) => env[name] !== undefined);
  const usesTls = env.REDIS_URL !== undefined && parseRedisUrl(env.REDIS_URL).usesTls;
  if (given !== undefined && !usesTls) {
    throw new ConfigError(`${given} needs a REDIS_URL that begins with rediss:// or rediss+sentinel://.`);
  }
  if ((env.REDIS_TLS_CERT_FILE === undefined) !== (env.REDIS_TLS_KEY_FILE === undefined)) {
    throw new ConfigError('REDIS_TLS_CERT_FILE and REDIS_TLS_KEY_FILE must be set together.');
  }
  return {
    redisUrl: env.REDIS_URL,
    redisTls: {
      caFile: env.REDIS_TLS_CA_CERT_FILE,
      certFile: env.REDIS_TLS_CERT_FILE,
      keyFile: env.REDIS_TLS_KEY_FILE,
      serverName: env.REDIS_TLS_SERVER_NAME,
    },
    allowsEviction: env.SLUICE_REDIS_EVICTION === 'allowed',
  };
}
