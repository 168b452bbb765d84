import { DatabaseLock } from './database-lock.ts';
import { isOnPostgres } from './database-settings.ts';
import type { TestGateway } from './gateway.ts';
import { sharedPostgres } from './postgres.ts';

/** Makes a gateway's database unusable, and answers what brings it back, which may be called again. */
export type DatabaseFault = (gateway: TestGateway) => Promise<() => Promise<void>>;

/** An SQLite file that nobody can read or write. */
async function lock({ dataDir }: TestGateway): Promise<() => Promise<void>> {
  const held = await DatabaseLock.take(dataDir);
  return async () => held.release();
}

/** A server that keeps its connections and answers nothing, as if its network were cut. */
async function silence(): Promise<() => Promise<void>> {
  const server = await sharedPostgres();
  server.pause();
  return async () => server.resume();
}

/** A server that has ended. */
async function shutDown(): Promise<() => Promise<void>> {
  const server = await sharedPostgres();
  await server.shutDown();
  return () => server.start();
}

/** Stops a gateway's database: it answers nothing. */
export const stopDatabase: DatabaseFault = isOnPostgres ? silence : lock;

/** The ways in which the database of these suites can be away, by what it does then. */
export const databaseFaults: Readonly<Record<string, DatabaseFault>> = isOnPostgres
  ? { silent: stopDatabase, ended: shutDown }
  : { locked: stopDatabase };
