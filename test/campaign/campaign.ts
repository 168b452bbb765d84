import { setTimeout as delay } from 'node:timers/promises';
import { leftovers, withLostReadersMs } from '../support/leftovers.ts';
import { SeededRandom } from '../support/seeded-random.ts';
import { judgeBlobs } from './blob-oracle.ts';
import { Client, type ClientHabits, type ClientRecord, clientKinds } from './clients.ts';
import { Deployment } from './deployment.ts';
import { FaultSchedule, type ScheduleOptions } from './fault-schedule.ts';
import { countUnfinished, judgeLedger } from './ledger-oracle.ts';
import { judgeClient, type Violation } from './oracle.ts';

export interface CampaignOptions extends ScheduleOptions, ClientHabits {
  readonly seed?: number | undefined;
  readonly requests: number;
  /** Clients at a time. */
  readonly clients: number;
  readonly apis: number;
  readonly workers: number;
  readonly product?: string | undefined;
}

/** What a campaign came to. */
export interface CampaignReport {
  readonly seed: number;
  readonly violations: readonly Violation[];
  /** How many there were: of requests by kind and end, of faults, of vendor calls. */
  readonly figures: Record<string, unknown>;
}

/** How long jobs may take to come to their end once all faults are over: those of dead workers, at their deadline. */
const settlingMs = 120_000;

/** Runs requests under faults, lets everything come to rest, and judges what has become of each. */
export async function runCampaign(options: CampaignOptions): Promise<CampaignReport> {
  const random = new SeededRandom(options.seed);
  const clock = new Phases();
  const deployment = await Deployment.start(options);
  const schedule = new FaultSchedule();
  try {
    const records: ClientRecord[] = [];
    clock.end('start');
    const faults = schedule.run(deployment, random.fork(1), options);
    await runClients(deployment, random.fork(2), options, records, faults);
    clock.end('clients');
    await rest(deployment, records);
    clock.end('rest');
    const violations = await judge(deployment, schedule, records);
    clock.end('judge');
    const figures = { ...figuresOf(deployment, schedule, records), seconds: clock.seconds };
    return { seed: random.seed, violations, figures };
  } finally {
    await deployment.stop();
  }
}

/** How long each part of a campaign takes. */
class Phases {
  readonly seconds: Record<string, number> = {};
  #from = Date.now();

  end(name: string): void {
    this.seconds[name] = Math.round((Date.now() - this.#from) / 100) / 10;
    this.#from = Date.now();
  }
}

/** So many clients at a time, until all requests are made and all faults have begun. */
async function runClients(
  deployment: Deployment,
  random: SeededRandom,
  { requests, clients, answers }: CampaignOptions,
  records: ClientRecord[],
  faults: Promise<void>,
): Promise<void> {
  let begun = 0;
  let areFaultsOver = false;
  void faults.then(() => {
    areFaultsOver = true;
  });
  const one = async (): Promise<void> => {
    while (begun < requests || !areFaultsOver) {
      const number = begun++;
      const name = `c${random.seed.toString(36)}-${number}`;
      const client = new Client(deployment, random.fork(number), name, { answers });
      records.push(client.record);
      await client.run();
      // What is refused at once would be asked again a thousand times a second.
      if (client.record.finals.every(({ type }) => type !== 'whole')) await delay(100);
    }
  };
  await Promise.all(Array.from({ length: clients }, one));
}

export async function rest(deployment: Deployment, records: readonly ClientRecord[]): Promise<void> {
  const deadline = Date.now() + settlingMs;
  const isAtRest = async (): Promise<boolean> =>
    deployment.vendor.open === 0 && (await countUnfinished(deployment, records)) === 0;
  while (Date.now() < deadline && !(await isAtRest())) await delay(500);
}

export async function judge(
  deployment: Deployment,
  schedule: FaultSchedule,
  records: readonly ClientRecord[],
): Promise<Violation[]> {
  const left = await leftovers(deployment.redisServer.url, { withinMs: withLostReadersMs, hasDeadWorkers: true });
  const found: Violation[] = [
    ...schedule.broken.map((detail) => ({ rule: 'harness_broken', detail })),
    ...left.map((detail) => ({ rule: 'left_in_redis', detail })),
  ];
  for (const record of records) {
    found.push(...judgeClient({ record, schedule, calls: deployment.vendor.calls.get(record.plan.marker) ?? [] }));
  }
  found.push(...(await judgeLedger(deployment, records)));
  found.push(...deployment.roles.flatMap(({ deaths }) => deaths.map((detail) => ({ rule: 'process_died', detail }))));
  found.push(...(await judgeBlobs(deployment, schedule, records)));
  return found;
}

function figuresOf(
  { vendor }: Deployment,
  schedule: FaultSchedule,
  records: readonly ClientRecord[],
): Record<string, unknown> {
  const ends: Record<string, Record<string, number>> = {};
  for (const kind of clientKinds) ends[kind] = {};
  for (const { kind, finals } of records) {
    for (const final of finals) {
      const name = final.type === 'error' ? `${final.status ?? ''} ${final.code}` : final.type;
      const counts = ends[kind] as Record<string, number>;
      counts[name] = (counts[name] ?? 0) + 1;
    }
  }
  const exchanges = records.reduce((sum, record) => sum + record.exchanges.length, 0);
  const leavers = records.filter(({ hasCancelled }) => hasCancelled).length;
  const calls = [...vendor.calls.values()].reduce((sum, those) => sum + those.length, 0);
  return { requests: records.length, exchanges, leavers, vendorCalls: calls, faults: schedule.counts(), ends };
}
