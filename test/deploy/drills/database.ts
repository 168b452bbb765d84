import { defaultAccountId } from '../../../shared/accounts/api-keys.ts';
import { newJobId } from '../../../shared/ids.ts';
import { recordText } from '../../../shared/jobs/settlement/outbox.ts';
import { accountKeys, quarantineKey } from '../../../shared/redis/keys.ts';
import { readVersions } from '../../../shared/runtime/wire-version.ts';
import { held } from '../../support/chat-requests.ts';
import { startPostgres, type TestPostgres } from '../../support/postgres.ts';
import type { Drill, Stage } from './stage.ts';

const servers = new WeakMap<Stage, TestPostgres>();

async function openOnPostgres(stage: Stage, settings: Record<string, string> = {}): Promise<void> {
  const postgres = await startPostgres();
  stage.use(() => postgres.stop());
  servers.set(stage, postgres);
  await stage.openGateway({ databaseUrl: await postgres.createDatabase(), settings });
  await stage.startApi();
  await stage.startWorker();
  await stage.ask();
}

const hangingDatabase: Drill = {
  fault: 'Postgres hangs under chats and questions about jobs',
  alerts: ['SluiceDatabaseUnreachable', 'SluiceDatabaseBusy', 'SluiceLedgerBehind'],
  open: openOnPostgres,
  begin: async (stage) => {
    const postgres = servers.get(stage) as TestPostgres;
    postgres.pause();
    stage.use(() => postgres.resume());
    stage.repeat(2, () => stage.ask());
    const job = `job_${'0'.repeat(32)}`;
    stage.repeat(20, () => stage.gateway.fetch(`/v1/jobs/${job}`, { signal: stage.signal }));
  },
  end: async (stage) => servers.get(stage)?.resume(),
};

/** A record of a job, as settlement writes it, with changes. */
function record(more: object): string {
  const now = Date.now();
  const text = recordText({
    ...{ id: newJobId(), account: defaultAccountId, apiKeyId: 'key_drill', endpoint: 'chat', capability: 'chat' },
    ...{ model: 'sandbox-chat', vendor: 'sandbox', stream: false, createdAt: now, beganAt: now, endedAt: now },
    ...{ outcome: 'completed', errorCode: undefined, attempts: 1, usage: undefined, retentionMs: 0 },
  });
  return JSON.stringify({ ...JSON.parse(text), ...more });
}

const stoppedDatabase: Drill = {
  fault: 'Postgres is stopped, and more records wait than Redis may hold',
  alerts: ['SluiceLedgerFailing', 'SluiceSpoolInUse'],
  open: (stage) => openOnPostgres(stage, { SLUICE_OUTBOX_MEGABYTES: '1' }),
  begin: async (stage) => {
    await servers.get(stage)?.shutDown();
    const large = held('Hi', { metadata: Object.fromEntries(metadataNames.map((name) => [name, 'x'.repeat(500)])) });
    stage.repeat(20, () => stage.ask(large));
  },
  end: async (stage) => servers.get(stage)?.start(),
};
const metadataNames = Array.from({ length: 16 }, (_, index) => `name${index}`);

const refusedRecords: Drill = {
  fault: 'records are in the outbox that the database refuses, or that a later version has written',
  alerts: ['SluiceRecordsSetAside', 'SluiceRecordsDropped', 'SluiceRecordsUnreadable'],
  open: async (stage) => {
    await stage.openGateway();
    await stage.startApi();
    await stage.startWorker();
    await stage.ask();
  },
  begin: async (stage) => {
    const redis = stage.redis();
    await redis.rpush(quarantineKey, ...Array<string>(10_000).fill('{}'));
    const send = (text: string) => redis.xadd(accountKeys.outbox(defaultAccountId), '*', 'r', text, 'c', 5);
    await send(record({ v: readVersions.newest + 1 }));
    // No column takes a part of a millisecond.
    await send(record({ retention: 0.5 }));
  },
  end: async (stage) => {
    // As if the newer version had come, and written it.
    await stage.redis().xtrim(accountKeys.outbox(defaultAccountId), 'MAXLEN', 0);
  },
};

/** Faults of the database and the ledger. */
export const databaseDrills: readonly Drill[] = [hangingDatabase, stoppedDatabase, refusedRecords];
