/**
 * How far the ledger is behind while records come in at a rate, beside requests:
 * `node --import tsx test/bench/ledger-rate.ts [--rows 10000] [--requests 1000] [--seconds 60]`. Fails when a record waits for
 * more than 2 s, when a rate is not reached, or when a row is missing. On a Postgres of its own; needs a build.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { Redis } from 'ioredis';
import { ensureAccount, findAccount } from '../../shared/accounts/accounts.ts';
import { openDatabase } from '../../shared/database/database.ts';
import { newJobId } from '../../shared/ids.ts';
import { recordText } from '../../shared/jobs/settlement/outbox.ts';
import { accountKeys } from '../../shared/redis/keys.ts';
import { type GatewayProcess, TestGateway } from '../support/gateway.ts';
import { startPostgres } from '../support/postgres.ts';
import { benchChatRequest } from './bench-requests.ts';
import { endChildren, nextMessage, startModule } from './children.ts';
import { PacedLoad } from './paced-load.ts';
import { childProcesses, cpuMicroseconds } from './process-usage.ts';

const maxLagSeconds = 2;
const tickMs = 10;
const cost = 5000;
const accounts = Array.from({ length: 20 }, (_, index) => `ledger-${index}`);

const { values } = parseArgs({
  options: {
    rows: { type: 'string', default: '10000' },
    requests: { type: 'string', default: '1000' },
    seconds: { type: 'string', default: '60' },
    ledgers: { type: 'string', default: '1' },
  },
});
const [rows, requests, seconds, ledgers] = [values.rows, values.requests, values.seconds, values.ledgers].map(
  Number,
) as [number, number, number, number];

/** A record as settlement writes it for a chat, but for the id. */
function templateOf(account: string): readonly [string, string] {
  const now = Date.now();
  const text = recordText({
    ...{ id: '<id>', account, apiKeyId: 'key_bench', endpoint: 'chat', capability: 'chat', model: 'gpt-4o-mini' },
    ...{ vendor: 'openai', stream: false, createdAt: now, beganAt: now, endedAt: now, outcome: 'completed' },
    ...{ errorCode: undefined, attempts: 1, retentionMs: 0 },
    usage: JSON.stringify({ prompt_tokens: 19, completion_tokens: 50, total_tokens: 69 }),
  });
  return text.split('<id>') as [string, string];
}

/** Puts records into the outboxes at the rate, as long as asked. Returns how many. */
async function feed(redis: Redis): Promise<number> {
  const templates = accounts.map((account) => ({ key: accountKeys.outbox(account), parts: templateOf(account) }));
  const startedAt = performance.now();
  let fed = 0;
  for (;;) {
    const passed = (performance.now() - startedAt) / 1000;
    if (passed >= seconds) return fed;
    const pipeline = redis.pipeline();
    for (; fed < passed * rows; fed++) {
      const { key, parts } = templates[fed % templates.length] as (typeof templates)[number];
      pipeline.xadd(key, '*', 'r', `${parts[0]}${newJobId()}${parts[1]}`, 'c', cost);
    }
    await pipeline.exec();
    await delay(tickMs);
  }
}

/** Age of the oldest record in any outbox, in seconds. */
async function lag(redis: Redis): Promise<number> {
  const heads = redis.pipeline();
  for (const key of accountKeys.allOutboxes()) heads.xrange(key, '-', '+', 'COUNT', 1);
  const [time, replies] = await Promise.all([redis.time(), heads.exec()]);
  const oldest = (replies ?? []).flatMap(([, entries]) =>
    (entries as [string][]).map(([id]) => Number(id.split('-')[0])),
  );
  const now = Number(time[0]) * 1000 + Number(time[1]) / 1000;
  return oldest.length === 0 ? 0 : (now - Math.min(...oldest)) / 1000;
}

interface Parts {
  readonly gateway: TestGateway;
  readonly databaseUrl: string;
  readonly ledger: readonly GatewayProcess[];
  readonly vendorPid: number;
}

/** Loads everything for as long as asked, and prints the figures. Returns whether all of them hold. */
async function run({ gateway, databaseUrl, ledger, vendorPid }: Parts): Promise<boolean> {
  const db = await openDatabase({ dataDir: gateway.dataDir, databaseUrl });
  for (const id of accounts) await ensureAccount(db, { id, name: id });
  const redis = new Redis(gateway.redisUrl);
  const load = new PacedLoad({
    ...{ origin: gateway.url, path: '/v1/chat/completions', headers: { authorization: `Bearer ${gateway.apiKey}` } },
    ...{ body: benchChatRequest(false), perSecond: requests, connections: 64 },
  });
  await delay(3000);
  const lags: number[] = [];
  let isOver = false;
  const sampling = (async () => {
    for (; !isOver; await delay(100)) lags.push(await lag(redis));
  })();
  const usage = new Usage([
    ...gateway.apis.map(({ pid }) => ['api', pid] as const),
    ['worker', gateway.workers[0]?.pid as number],
    ...ledger.map(({ pid }) => ['ledger', pid] as const),
    ['Redis', gateway.redis?.pid as number],
    ['Postgres', postgresPid()],
    ['vendor', vendorPid],
    ['load', process.pid],
  ]);
  const [answered, startedAt] = [load.count(200), performance.now()];
  const fed = await feed(redis);
  const passed = (performance.now() - startedAt) / 1000;
  const served = load.count(200) - answered;
  const used = usage.report(passed);
  isOver = true;
  await sampling;
  await load.stop();
  const failed = [...load.answers].filter(([status, count]) => status !== 200 && count > 0);
  const drainedAt = performance.now();
  while ((await lag(redis)) > 0) await delay(50);
  const drainSeconds = (performance.now() - drainedAt) / 1000;
  const { count } = (await db
    .selectFrom('jobs')
    .select(({ fn }) => fn.countAll().as('count'))
    .executeTakeFirst()) as { count: number | string };
  const found = await Promise.all(accounts.map((id) => findAccount(db, id)));
  const charged = found.reduce((sum, account) => sum + (account?.charged ?? 0), 0);
  const sorted = [...lags].sort((one, other) => one - other);
  const at = (share: number) => (sorted[Math.floor(share * (sorted.length - 1))] ?? Number.NaN).toFixed(2);
  console.log(
    [
      `${(fed / passed).toFixed(0)} records/s of ${rows}, ${(served / passed).toFixed(0)} requests/s of ${requests}, for ${passed.toFixed(0)} s`,
      `lag: p50 ${at(0.5)}, p99 ${at(0.99)}, at most ${at(1)} s; the outboxes were empty ${drainSeconds.toFixed(1)} s after the end`,
      `CPU, % of a core: ${used}`,
      `rows ${count} of ${fed + load.count(200)}, charged ${charged} of ${fed * cost}; not answered with 200: ${JSON.stringify(failed)}`,
    ].join('\n'),
  );
  redis.disconnect();
  await db.destroy();
  const isExact = Number(count) === fed + load.count(200) && charged === fed * cost;
  const isInTime = (sorted.at(-1) ?? 0) <= maxLagSeconds;
  return (
    isExact && isInTime && failed.length === 0 && fed >= 0.98 * rows * passed && served >= 0.98 * requests * passed
  );
}

/** The process that all of Postgres's are children of. */
function postgresPid(): number {
  const found = childProcesses(process.pid).find(({ command }) => /\bpostgres -D /.test(command));
  if (found === undefined) throw new Error('no Postgres runs');
  return found.pid;
}

/** CPU of the machine's cores that is used, in µs, of all of them together. */
function machineMicroseconds(): number {
  return cpus().reduce((sum, { times }) => sum + (times.user + times.nice + times.sys + times.irq) * 1000, 0);
}

/** CPU time of processes and their children from its making on, and of what else runs on this machine. */
class Usage {
  readonly #processes: readonly (readonly [string, number])[];
  readonly #before: ReadonlyMap<number, number>;
  readonly #machineBefore = machineMicroseconds();

  constructor(processes: readonly (readonly [string, number])[]) {
    this.#processes = processes;
    this.#before = new Map(processes.map(([name, pid]) => [pid, this.#of(name, pid)]));
  }

  #of(name: string, pid: number): number {
    const children = name === 'Postgres' ? childProcesses(pid) : [];
    return [pid, ...children.map((child) => child.pid)].reduce((sum, each) => sum + cpuMicroseconds(each), 0);
  }

  report(passedSeconds: number): string {
    const percent = (microseconds: number): number => Math.round(microseconds / passedSeconds / 1e4);
    const used = this.#processes.map(
      ([name, pid]) => [name, percent(this.#of(name, pid) - (this.#before.get(pid) ?? 0))] as const,
    );
    const all = percent(machineMicroseconds() - this.#machineBefore);
    const others = used.reduce((left, [, own]) => left - own, all);
    const parts = [...used, ['others on this machine', others] as const];
    return `${parts.map(([name, own]) => `${name} ${own}`).join(', ')}; ${all} of ${cpus().length * 100}`;
  }
}

const directory = await mkdtemp(join(tmpdir(), 'sluice-bench-'));
const postgres = await startPostgres({ settings: { shared_buffers: '256MB', wal_level: 'minimal' } });
let gateway: TestGateway | undefined;
let isMet = false;
try {
  const vendor = startModule('vendor', 'minimal-vendor.ts', ['10'], join(directory, 'vendor.log'));
  const { port } = await nextMessage<{ port: number }>(vendor, 20_000);
  const databaseUrl = await postgres.createDatabase();
  gateway = await TestGateway.start({
    databaseUrl,
    settings: {
      ...{ SLUICE_LEDGER: 'off', OPENAI_API_KEY: 'bench', OPENAI_BASE_URL: `http://127.0.0.1:${port}/v1` },
      LOG_LEVEL: 'warn',
    },
  });
  const ledger: GatewayProcess[] = [];
  for (let count = 0; count < ledgers; count++) ledger.push(await gateway.startLedger());
  isMet = await run({ gateway, databaseUrl, ledger, vendorPid: vendor.pid });
} finally {
  await gateway?.stop();
  await endChildren();
  await postgres.stop();
  await rm(directory, { recursive: true, force: true });
}
process.exit(isMet ? 0 : 1);
