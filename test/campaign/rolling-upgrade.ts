import { setTimeout as delay } from 'node:timers/promises';
import { SeededRandom } from '../support/seeded-random.ts';
import type { AnswerPlan } from './answer-plan.ts';
import { judge, rest } from './campaign.ts';
import { Client, type ClientRecord, clientKinds } from './clients.ts';
import { Deployment, type Role } from './deployment.ts';
import { FaultSchedule } from './fault-schedule.ts';
import { type LedgerSums, sumLedger } from './ledger-oracle.ts';
import type { Violation } from './oracle.ts';

type Build = 'old' | 'new';

/** Which build each api and each worker runs. */
interface Phase {
  readonly name: string;
  readonly apis: readonly Build[];
  readonly workers: readonly Build[];
}

const both = (build: Build): readonly Build[] => [build, build];

/** An upgrade with workers first, a rollback in the same order, and an upgrade that stops halfway for a while. */
const phases: readonly Phase[] = [
  { name: 'old apis, old workers', apis: both('old'), workers: both('old') },
  { name: 'old apis, new workers', apis: both('old'), workers: both('new') },
  { name: 'new apis, new workers', apis: both('new'), workers: both('new') },
  { name: 'new apis, old workers', apis: both('new'), workers: both('old') },
  { name: 'back to the old', apis: both('old'), workers: both('old') },
  { name: 'one of each', apis: ['old', 'new'], workers: ['old', 'new'] },
  { name: 'on to the new', apis: both('new'), workers: both('new') },
];

export interface RollingOptions {
  readonly seed?: number | undefined;
  /** Folders of the builds. */
  readonly builds: Readonly<Record<Build, string>>;
  readonly databaseUrl: string;
  /** What every answer is like, whatever is drawn; they are whole, and have usage. */
  readonly answers?: Partial<AnswerPlan>;
  /** How long each phase lasts at least, once its processes run. */
  readonly phaseSeconds: number;
  /** Clients at a time. */
  readonly clients: number;
  readonly balancerCheckMs: number;
  readonly lameDuckSeconds: number;
}

/** What an upgrade and a rollback under load came to. */
export interface RollingReport {
  readonly seed: number;
  readonly violations: readonly Violation[];
  readonly records: readonly ClientRecord[];
  /** Requests that a process short of CPU refused. */
  readonly refused: number;
  /** Every final that is not a whole answer, without those refusals. */
  readonly failures: readonly string[];
  /** Requests that began and ended whole within each phase, by kind. */
  readonly wholeInPhase: Readonly<Record<string, Readonly<Record<string, number>>>>;
  readonly sums: LedgerSums;
  /** Health checks that were not answered with 200: a replaced process's are 503 before it ends. */
  readonly failedChecks: readonly string[];
}

/** A phase that has not seen a request of each kind by then has failed. */
const phasePatienceMs = 60_000;

/** Replaces processes of one build by those of another and back, one at a time, under requests of every kind. */
export async function rollUnderLoad(options: RollingOptions): Promise<RollingReport> {
  const { builds, clients, balancerCheckMs, lameDuckSeconds, databaseUrl } = options;
  const random = new SeededRandom(options.seed);
  const deployment = await Deployment.start({
    ...{ apis: 2, workers: 2, product: builds.old, databaseUrl, balancerCheckMs },
    // As operators run it: the drain's default.
    settings: { SLUICE_SHUTDOWN_SECONDS: '', SLUICE_LAME_DUCK_SECONDS: String(lameDuckSeconds) },
  });
  try {
    const records: ClientRecord[] = [];
    const answers = { ...options.answers, usage: true, ending: 'whole' } as const;
    let isOver = false;
    const load = Array.from({ length: clients }, async () => {
      while (!isOver) {
        const name = `r${random.seed.toString(36)}-${records.length}`;
        const client = new Client(deployment, random.fork(records.length), name, { answers, areLoyal: true });
        records.push(client.record);
        await client.run();
      }
    });
    const rolling = rollThrough(deployment, options, records).finally(() => {
      isOver = true;
    });
    const [wholeInPhase] = await Promise.all([rolling, ...load]);
    await rest(deployment, records);
    const violations = await judge(deployment, new FaultSchedule(), records);
    const sums = await sumLedger(deployment);
    return {
      seed: random.seed,
      violations,
      records,
      wholeInPhase,
      ...failuresOf(records),
      sums,
      failedChecks: deployment.failedChecks,
    };
  } finally {
    await deployment.stop();
  }
}

/** Goes through all phases, and returns what ended whole within each. */
async function rollThrough(
  deployment: Deployment,
  { builds, phaseSeconds }: RollingOptions,
  records: readonly ClientRecord[],
): Promise<RollingReport['wholeInPhase']> {
  const running = new Map<Role, Build>(deployment.roles.map((role) => [role, 'old']));
  const found: Record<string, Record<string, number>> = {};
  for (const { name, apis, workers } of phases) {
    for (const [index, build] of [...apis, ...workers].entries()) {
      const role = deployment.roles[index] as Role;
      if (running.get(role) === build) continue;
      deployment.gateway.product = builds[build];
      await role.replace();
      running.set(role, build);
    }
    found[name] = await dwell(records, phaseSeconds);
  }
  return found;
}

/** Waits so long, and until a request of each kind has begun and ended whole meanwhile; counts them by kind. */
async function dwell(records: readonly ClientRecord[], seconds: number): Promise<Record<string, number>> {
  const from = Date.now();
  for (;;) {
    await delay(100);
    const within = records.filter(
      ({ exchanges, finals }) =>
        (exchanges[0]?.at ?? 0) >= from && finals.length > 0 && finals.every(({ type }) => type === 'whole'),
    );
    const counts = Object.fromEntries(
      clientKinds.map((kind) => [kind, within.filter((record) => record.kind === kind).length]),
    );
    const isSeen = Object.values(counts).every((count) => count > 0);
    const passed = Date.now() - from;
    if ((isSeen && passed >= seconds * 1000) || passed > Math.max(phasePatienceMs, seconds * 1000)) return counts;
  }
}

/** What the client was told last, and when. */
function lastAnswer(exchanges: ClientRecord['exchanges']): string {
  const last = exchanges.at(-1);
  return `${new Date(last?.endedAt ?? 0).toISOString()} ${last?.bytes.subarray(-300)}`;
}

/** A process short of CPU refuses, whether or not any is replaced: that is counted apart. */
function failuresOf(records: readonly ClientRecord[]): Pick<RollingReport, 'refused' | 'failures'> {
  let refused = 0;
  const failures: string[] = [];
  for (const { kind, plan, finals, exchanges } of records) {
    const isRefused = exchanges.some(
      ({ status, bytes }) => status === 503 && bytes.includes('The server is overloaded.'),
    );
    for (const final of finals) {
      if (final.type === 'whole') continue;
      if (isRefused) refused++;
      else failures.push(`${plan.marker} (${kind}): ${JSON.stringify(final)}, ${lastAnswer(exchanges)}`);
    }
  }
  return { refused, failures };
}
