import { z } from 'zod';
import { ConfigError } from './config-error.ts';

const tlsModes = ['disable', 'prefer', 'require', 'verify-ca', 'verify-full', 'no-verify'];
const tlsOptions = ['ssl', 'sslmode', 'sslrootcert', 'sslcert', 'sslkey', 'sslnegotiation', 'uselibpqcompat'];

/** The options behind an address's question mark. */
export function optionsOf(url: string): URLSearchParams {
  return new URLSearchParams(url.split(/\?(.*)/s)[1] ?? '');
}

/** Any other option of TLS would silently do nothing, and leave the connection without what it asks for. */
function hasKnownTls(url: string): boolean {
  const options = optionsOf(url);
  const unknown = [...options.keys()].some((name) => /ssl|tls|cert/i.test(name) && !tlsOptions.includes(name));
  return !unknown && tlsModes.includes(options.get('sslmode') ?? 'disable');
}

/** Settings of the database and of how processes use it, as environment variables. */
export const databaseSettings = {
  DATABASE_URL: z
    .string()
    .regex(/^postgres(ql)?:\/\//, 'must begin with postgres://')
    .refine(
      hasKnownTls,
      `must have of TLS only ${tlsOptions.join(', ')} behind its question mark, and as sslmode one of ${tlsModes.join(', ')}`,
    )
    .optional(),
  SLUICE_MIGRATE_AT_START: z.enum(['on', 'off']).default('on'),
  SLUICE_LEDGER: z.enum(['on', 'off']).default('on'),
  SLUICE_JOBS_RETENTION_DAYS: z.coerce.number().int().min(0).max(36_500).default(0),
  SLUICE_JOBS_EXPORT: z.enum(['off', 'csv', 'jsonl']).default('off'),
};

/** How processes use the database. */
export interface DatabaseUse {
  /** Whether a process that starts runs the migrations that the database lacks; false: it refuses to start. */
  readonly migratesAtStart: boolean;
  /** Whether an api process also does the ledger's work; false: processes of its own do. */
  readonly runsLedger: boolean;
  /** How long the rows of jobs are kept, in ms; undefined: for good. At least as long as their requests and answers. */
  readonly jobRetentionMs: number | undefined;
  /** The format in which expired rows are exported before they are deleted. */
  readonly jobExport: 'off' | 'csv' | 'jsonl';
}

/**
 * Converts the settings to the units of the code.
 * @param env with `SLUICE_RETENTION_DAYS`
 * @throws ConfigError if the row of a job would be deleted before its request and answer.
 */
export function readDatabaseSettings(
  env: z.output<z.ZodObject<typeof databaseSettings>> & { readonly SLUICE_RETENTION_DAYS: number },
): DatabaseUse {
  const days = env.SLUICE_JOBS_RETENTION_DAYS;
  if (days !== 0 && days < env.SLUICE_RETENTION_DAYS) {
    throw new ConfigError(
      `SLUICE_JOBS_RETENTION_DAYS must be at least SLUICE_RETENTION_DAYS, ${env.SLUICE_RETENTION_DAYS}: kept answers need their jobs.`,
    );
  }
  return {
    migratesAtStart: env.SLUICE_MIGRATE_AT_START === 'on',
    runsLedger: env.SLUICE_LEDGER === 'on',
    jobRetentionMs: days === 0 ? undefined : days * 86_400_000,
    jobExport: env.SLUICE_JOBS_EXPORT,
  };
}
