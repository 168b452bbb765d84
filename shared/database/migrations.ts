import { readdirSync, readFileSync } from 'node:fs';

/** The supported databases. */
export type DatabaseKind = 'sqlite' | 'postgres';

/** One step of the schema: a file `migrations/KIND/NNN-name.sql`, with the same name for every kind. */
export interface Migration {
  /** The file's name without its extension; recorded once the step is done. */
  readonly name: string;
  readonly sql: string;
}

/** All migrations of one kind, ordered by number. A released file is never changed: a new one corrects it. */
export function readMigrations(kind: DatabaseKind): Migration[] {
  const folder = new URL(`./migrations/${kind}/`, import.meta.url);
  return readdirSync(folder)
    .filter((file) => file.endsWith('.sql'))
    .sort()
    .map((file) => ({ name: file.slice(0, -'.sql'.length), sql: readFileSync(new URL(file, folder), 'utf8') }));
}

/**
 * The migrations that a database lacks.
 * @param done names of its applied migrations
 * @throws Error if one of them is unknown to this version.
 */
export function missingMigrations(migrations: readonly Migration[], done: ReadonlySet<string>): Migration[] {
  const known = new Set(migrations.map(({ name }) => name));
  for (const name of done) {
    if (!known.has(name)) throw new Error(`it was written by a newer version (migration ${name})`);
  }
  return migrations.filter(({ name }) => !done.has(name));
}
