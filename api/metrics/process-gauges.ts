import { sql } from 'kysely';
import type { Database } from '../../shared/database/database.ts';
import type { DatabaseActivity } from '../../shared/database/database-activity.ts';
import { addGauge, atScrape, metricMakers, type Registry, readInTime } from '../../shared/runtime/metrics.ts';
import type { BodyShares } from '../bounds/body-shares.ts';
import type { Connections } from '../bounds/connections.ts';
import type { DiskFloor } from '../bounds/disk-floor.ts';
import type { SocketShares } from '../bounds/socket-shares.ts';
import type { DatabaseHealth } from '../ledger/database-health.ts';
import type { Handover } from '../replies/client-connection.ts';

/** Sources of an api process's own gauges. */
export interface ProcessGauges {
  readonly handover: Pick<Handover, 'size'>;
  readonly connections: Pick<Connections, 'size' | 'unsent'>;
  readonly sockets: Pick<SocketShares, 'size'>;
  readonly bodies: Pick<BodyShares, 'total'>;
  readonly uploads: Pick<BodyShares, 'total'>;
  readonly disk: Pick<DiskFloor, 'free'>;
  readonly db: Database;
  readonly database: Pick<DatabaseHealth, 'state'>;
  readonly activity: DatabaseActivity;
}

/** Adds the gauges of what callers use of this process, and of what is left of what it needs. They cost Redis nothing. */
export function addProcessGauges(registry: Registry, sources: ProcessGauges): void {
  const { handover, connections, sockets, bodies, uploads, disk, db, database, activity } = sources;
  const add = (name: string, help: string, read: () => number | Promise<number>): void =>
    addGauge(registry, name, help, read);
  add('sluice_requests_running', 'Requests that this process is working on.', () => handover.size);
  add('sluice_connections_open', 'Open connections to this process.', () => connections.size);
  add('sluice_sockets_open', 'Open WebSockets, and other connections that follow a job.', () => sockets.size);
  add('sluice_unsent_bytes', 'Bytes that clients have yet to read.', () => connections.unsent);
  add('sluice_bodies_bytes', 'Bytes of request bodies in memory.', () => bodies.total);
  add('sluice_uploads_bytes', 'Bytes of the files of unfinished forms.', () => uploads.total);
  add('sluice_data_free_bytes', 'Free space on the disk of the data folder.', () => disk.free());
  add(
    'sluice_database_connections_busy',
    'Connections to the database in use; of SQLite: 1 while a statement runs.',
    () => activity.use().busy,
  );
  add('sluice_database_connections_max', 'Connections to the database that this process may open.', () => activity.max);
  add(
    'sluice_database_waiting',
    'Statements that wait for a connection to the database.',
    () => activity.use().waiting,
  );
  const { gauge, histogram } = metricMakers(registry);
  const up = gauge('sluice_database_up', 'Whether the database answers and takes writes (1 or 0).');
  atScrape(up, async () => up.set((await database.state()) === 'ok' ? 1 : 0));
  const lag = gauge(
    'sluice_database_lag_seconds',
    'Duration of a SELECT 1 at the time of the scrape, with the wait for a connection; -1: no answer within a second.',
  );
  atScrape(lag, async () => lag.set(await databaseLag(db)));
  const statements = histogram(
    'sluice_database_statement_seconds',
    'Duration of statements of the database, by outcome; of SQLite with the wait for those before.',
    'outcome',
  );
  activity.onStatement = (seconds, outcome) => statements.observe({ outcome }, seconds);
}

/** Seconds that a statement takes, or -1 after a second without an answer. */
async function databaseLag(db: Database): Promise<number> {
  const startedAt = performance.now();
  const answer = await readInTime(() => sql`select 1`.execute(db));
  return answer === undefined ? -1 : (performance.now() - startedAt) / 1000;
}
