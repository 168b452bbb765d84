import { z } from 'zod';

/** Settings of how processes use the database, as environment variables. */
export const databaseSettings = {
  SLUICE_MIGRATE_AT_START: z.enum(['on', 'off']).default('on'),
};

/** How processes use the database. */
export interface DatabaseUse {
  /** Whether a process that starts runs the migrations that the database lacks; false: it refuses to start. */
  readonly migratesAtStart: boolean;
}

/** Converts the settings to the units of the code. */
export function readDatabaseSettings(env: z.output<z.ZodObject<typeof databaseSettings>>): DatabaseUse {
  return { migratesAtStart: env.SLUICE_MIGRATE_AT_START === 'on' };
}
