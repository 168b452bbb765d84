import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import type { TestGateway } from '../gateway.ts';
import { type LeftoverOptions, leftovers, withLostReadersMs } from '../leftovers.ts';
import { check, describeSummary, type Ending, type Summary } from './checker.ts';
import { runStream, type StreamPlan, type StreamRecord } from './stream-client.ts';

/** Full figures (2,000 streams over all faults) instead of the ordinary ones. */
export const isSoak = Boolean(process.env.SLUICE_SOAK);

/** Whether the version of Node that counts runs this: on the others (see test/run.mjs) what takes long is tried with less. */
export const isMainNode = process.env.SLUICE_TEST_OTHER_NODE === undefined;

/** How many streams a fault gets. */
export function streamCount(ordinary: number, soak: number): number {
  return isSoak ? soak : ordinary;
}

let loads = 0;

/** A number of clients against one gateway, each with a stream of its own. */
export class Load {
  readonly #gateway: TestGateway;
  readonly #name: string;
  readonly #runs: Promise<StreamRecord>[] = [];
  readonly #counts = new Map<string, number>();
  #watchers: (() => void)[] = [];

  constructor(gateway: TestGateway) {
    this.#gateway = gateway;
    loads++;
    this.#name = `load${loads}`;
  }

  /** Starts clients; `plan` says what each does. By default they ask the apis in turn. */
  add(count: number, plan: Omit<StreamPlan, 'name' | 'apiKey' | 'apis'> & Partial<Pick<StreamPlan, 'apis'>>): void {
    for (let index = 0; index < count; index++) {
      const name = `${this.#name}-${this.#runs.length}`;
      const full: StreamPlan = {
        apis: () => this.#gateway.apis.filter((api) => api.child.signalCode === null).map((api) => api.url),
        ...plan,
        apiKey: this.#gateway.apiKey,
        name,
        onEvent: (events, connection) => {
          this.#counts.set(name, events);
          for (const watch of this.#watchers) watch();
          plan.onEvent?.(events, connection);
        },
      };
      this.#runs.push(runStream(full, this.#runs.length));
    }
  }

  /** Resolves when so many clients have received at least `events` events. */
  reached(streams: number, events: number): Promise<void> {
    return new Promise((resolve) => {
      const watch = (): void => {
        const those = [...this.#counts.values()].filter((count) => count >= events);
        if (those.length < streams) return;
        this.#watchers = this.#watchers.filter((other) => other !== watch);
        resolve();
      };
      this.#watchers.push(watch);
      watch();
    });
  }

  /** Resolves when every client is through. */
  records(): Promise<StreamRecord[]> {
    return Promise.all(this.#runs);
  }
}

/** Checks all records and what is left in Redis, prints the summary, and fails with every broken rule. */
export async function verify(
  t: Pick<TestContext, 'diagnostic'>,
  fault: string,
  options: {
    gateway: TestGateway;
    records: readonly StreamRecord[];
    endings: readonly Ending[];
    redisUrl?: string;
  } & LeftoverOptions,
): Promise<Summary> {
  const { gateway, records, endings } = options;
  const summary = await check(records, gateway.sandbox.url, endings);
  t.diagnostic(describeSummary(fault, summary));
  assert.deepEqual(summary.violations, []);
  const left = await leftovers(options.redisUrl ?? gateway.redisUrl, { withinMs: withLostReadersMs, ...options });
  assert.deepEqual(left, [], 'left behind in Redis');
  return summary;
}
