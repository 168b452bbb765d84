import { readdirSync, readFileSync } from 'node:fs';

/** The supported databases. */
export type DatabaseKind = 'sqlite' | 'postgres';

/**
 * One step of the schema: a file `migrations/KIND/NNN-name.sql`, with the same name for every kind.
 *
 * A step only expands: the release before still runs on its result. What it makes superfluous is removed a release later, by a
 * step that also raises the minimum: `UPDATE schema_compat SET min_version = NNN`.
 */
export interface Migration {
  /** The file's name without its extension; recorded once the step is done. */
  readonly name: string;
  readonly sql: string;
}

/** What a database says of its schema. */
export interface SchemaState {
  /** Names of its applied migrations. */
  readonly done: ReadonlySet<string>;
  /** The number of a migration. A version without this one, or a later one, cannot use the database. */
  readonly minVersion: number;
}

/** The state of a database without tables. */
export const emptySchema: SchemaState = { done: new Set(), minVersion: 0 };

/** A database that this version cannot use. Its message is a part of a sentence. */
export class SchemaError extends Error {
  override readonly name = 'SchemaError';
}

/**
 * First line of a step that must not run in a transaction, such as `CREATE INDEX CONCURRENTLY`. Its statements run one by one, and
 * again from the first if one fails, so each must tolerate a repeat. Postgres only.
 */
const separately = /^-- Outside a transaction\b/;
/** Versions before this step refuse a database if they do not know each name in `migrations`: later names are kept apart. */
const firstApart = 16;

/** Tables that record the schema, for both kinds; in this order. */
export const recordTables = [
  'CREATE TABLE IF NOT EXISTS migrations (name TEXT PRIMARY KEY NOT NULL, done_at BIGINT NOT NULL)',
  'CREATE TABLE IF NOT EXISTS schema_changes (name TEXT PRIMARY KEY NOT NULL, done_at BIGINT NOT NULL)',
  'CREATE TABLE IF NOT EXISTS schema_compat (min_version BIGINT NOT NULL)',
  'INSERT INTO schema_compat SELECT 0 WHERE NOT EXISTS (SELECT 1 FROM schema_compat)',
] as const;

/** Whether each of the tables exists decides how its rows are read. */
export const recordQueries = {
  migrations: 'SELECT name FROM migrations',
  schema_changes: 'SELECT name FROM schema_changes',
  schema_compat: 'SELECT min_version FROM schema_compat',
} as const;

/** The table that records a step. */
export function recordTableOf({ name }: Migration): 'migrations' | 'schema_changes' {
  return versionOf(name) < firstApart ? 'migrations' : 'schema_changes';
}

/** All migrations of one kind, ordered by number. A released file is never changed: a new one corrects it. */
export function readMigrations(kind: DatabaseKind): Migration[] {
  const folder = new URL(`./migrations/${kind}/`, import.meta.url);
  return readdirSync(folder)
    .filter((file) => file.endsWith('.sql'))
    .sort()
    .map((file) => ({ name: file.slice(0, -'.sql'.length), sql: readFileSync(new URL(file, folder), 'utf8') }));
}

/** The statements of a step that runs outside a transaction; undefined: all of it is one transaction. */
export function separateStatements({ sql }: Migration): string[] | undefined {
  if (!separately.test(sql)) return undefined;
  return sql.split(/;\s*(?:\n|$)/).filter((statement) => statement.replaceAll(/^--.*$/gm, '').trim() !== '');
}

/** The number of the newest of these migrations: the schema's version. */
export function newestVersion(migrations: readonly Migration[]): number {
  return Math.max(0, ...migrations.map(({ name }) => versionOf(name)));
}

/**
 * The migrations that a database lacks. Those that only a newer version knows do not matter: it may run beside this one, or have
 * been rolled back.
 * @throws SchemaError if the database can only be used by newer versions.
 */
export function missingMigrations(migrations: readonly Migration[], { done, minVersion }: SchemaState): Migration[] {
  const newest = newestVersion(migrations);
  if (minVersion > newest) {
    throw new SchemaError(
      `a newer version of the gateway has changed it for good (its schema needs version ${minVersion}, and this gateway has ${newest})`,
    );
  }
  return migrations.filter(({ name }) => !done.has(name));
}

/** @throws SchemaError if a database lacks migrations, and this process is not to run them. */
export function requireMigrated(missing: readonly Migration[]): void {
  if (missing.length === 0) return;
  throw new SchemaError(
    `it lacks ${missing.map(({ name }) => name).join(', ')}: run "npm run migrate" first (SLUICE_MIGRATE_AT_START is off)`,
  );
}

function versionOf(name: string): number {
  return Number.parseInt(name, 10);
}
