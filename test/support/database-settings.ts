import type { DatabaseSettings } from '../../shared/database/database.ts';

/** Which database the suites use: `SLUICE_TEST_DATABASE` names it, and SQLite is the default. */
export const isOnPostgres = process.env.SLUICE_TEST_DATABASE === 'postgres';

const urls = new Map<string, Promise<string>>();

/** The database that goes with a data folder, the same each time: a file in it, or a database of this process's Postgres. */
export async function databaseSettings(dataDir: string): Promise<DatabaseSettings> {
  if (!isOnPostgres) return { dataDir, databaseUrl: undefined };
  let url = urls.get(dataDir);
  if (url === undefined) {
    // Hundreds of suites would load its client for nothing.
    url = import('./postgres.ts').then(async ({ sharedPostgres }) => (await sharedPostgres()).createDatabase());
    urls.set(dataDir, url);
  }
  return { dataDir, databaseUrl: await url };
}
