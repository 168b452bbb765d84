import { readdirSync, readFileSync } from 'node:fs';

/** One step of the schema: a file `migrations/NNN-name.sql`. */
export interface Migration {
  /** The file's name without its ending; it is recorded once the step is done. */
  readonly name: string;
  readonly sql: string;
}

/** All migrations in the order of their numbers. A file that was released is never changed: a new one corrects it. */
export function readMigrations(folder: URL = new URL('./migrations/', import.meta.url)): Migration[] {
  return readdirSync(folder)
    .filter((file) => file.endsWith('.sql'))
    .sort()
    .map((file) => ({ name: file.slice(0, -'.sql'.length), sql: readFileSync(new URL(file, folder), 'utf8') }));
}
