import { join } from 'node:path';
import { type DatabaseSettings, databaseFile, ensureDataDir, orConfigError } from './database.ts';
import { missingMigrations, newestVersion, readMigrations, type SchemaState } from './migrations.ts';

/** How a database's schema compares with this version's. */
export interface SchemaStatus {
  /** The schema's version that this gateway was made for: the number of its newest migration. */
  readonly version: number;
  /** The lowest such version that can use the database. */
  readonly minVersion: number;
  /** Migrations that the database lacks. */
  readonly missing: readonly string[];
  /** Migrations that a newer version has run. */
  readonly newer: readonly string[];
}

/**
 * Compares a database with this version, and changes nothing.
 * @throws ConfigError when it cannot be read, or can only be used by newer versions.
 */
export async function readSchemaStatus(settings: DatabaseSettings): Promise<SchemaStatus> {
  const { databaseUrl, dataDir } = settings;
  return await orConfigError(settings, async () => {
    if (databaseUrl !== undefined) {
      const { readPostgresSchema } = await import('./migrate-postgres.ts');
      return statusOf('postgres', await readPostgresSchema(databaseUrl));
    }
    const { readSqliteSchema } = await import('./sqlite-file.ts');
    return statusOf('sqlite', readSqliteSchema(join(dataDir, databaseFile)));
  });
}

/**
 * Runs the migrations that a database lacks, whatever the settings say of starts.
 * @returns their names
 * @throws ConfigError when it cannot be used
 */
export async function migrateDatabase(settings: DatabaseSettings): Promise<readonly string[]> {
  const { databaseUrl, dataDir } = settings;
  if (databaseUrl === undefined) await ensureDataDir(dataDir);
  return await orConfigError(settings, async () => {
    if (databaseUrl !== undefined) {
      const { migratePostgres } = await import('./migrate-postgres.ts');
      return await migratePostgres(databaseUrl);
    }
    const { openSqliteFile, readSqliteSchema } = await import('./sqlite-file.ts');
    const path = join(dataDir, databaseFile);
    const migrations = readMigrations('sqlite');
    const missing = missingMigrations(migrations, readSqliteSchema(path));
    openSqliteFile(path, migrations).close();
    return missing.map(({ name }) => name);
  });
}

function statusOf(kind: 'sqlite' | 'postgres', state: SchemaState): SchemaStatus {
  const migrations = readMigrations(kind);
  const known = new Set(migrations.map(({ name }) => name));
  return {
    version: newestVersion(migrations),
    minVersion: state.minVersion,
    missing: missingMigrations(migrations, state).map(({ name }) => name),
    newer: [...state.done].filter((name) => !known.has(name)).sort(),
  };
}
