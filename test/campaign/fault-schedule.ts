import { setTimeout as delay } from 'node:timers/promises';
import type { SeededRandom } from '../support/seeded-random.ts';
import type { Deployment } from './deployment.ts';
import { drawFault, type FaultKind, faultKinds } from './faults.ts';

/** A fault that has happened. */
export interface PastFault {
  readonly kind: FaultKind;
  readonly part: string;
  readonly from: number;
  /** Undefined while it lasts. */
  to: number | undefined;
}

export interface ScheduleOptions {
  readonly faults: number;
  /** Between the beginnings of two faults, in the mean. */
  readonly gapMs: number;
  /** Kinds to choose from; left out: all. */
  readonly only?: readonly FaultKind[] | undefined;
}

/** Lets faults happen, several at a time, each part by one of them. */
export class FaultSchedule {
  readonly past: PastFault[] = [];
  /** What went wrong in the harness itself. */
  readonly broken: string[] = [];
  readonly #busy = new Map<string, Promise<void>>();
  #isStopped = false;

  /** Resolves when all are over. */
  async run(deployment: Deployment, random: SeededRandom, options: ScheduleOptions): Promise<void> {
    const { faults, gapMs, only = faultKinds } = options;
    for (let count = 0; count < faults && !this.#isStopped; count++) {
      const fault = drawFault(deployment, random, only);
      // Before the first, too: what is not under way yet cannot be hit.
      const rest = delay(random.int(0, 2 * gapMs));
      const before = this.#busy.get(fault.part) ?? Promise.resolve();
      const isFree = this.#busy.size < 4 ? undefined : Promise.race(this.#busy.values());
      await rest;
      await isFree;
      await before;
      const past: PastFault = { kind: fault.kind, part: fault.part, from: Date.now(), to: undefined };
      this.past.push(past);
      const over = fault
        .run()
        .catch((error) => this.broken.push(`${fault.kind} of ${fault.part}: ${error}`))
        .then(() => {
          past.to = Date.now();
          this.#busy.delete(fault.part);
        });
      this.#busy.set(fault.part, over);
    }
    await Promise.all(this.#busy.values());
  }

  /** No further fault begins. */
  stop(): void {
    this.#isStopped = true;
  }

  /** Whether a fault of one of these kinds, of this part if one is named, fell into a span of time. */
  has(kinds: readonly FaultKind[], from: number, to: number, part?: string): boolean {
    return this.past.some(
      (fault) =>
        kinds.includes(fault.kind) &&
        (part === undefined || fault.part.endsWith(part)) &&
        fault.from <= to &&
        (fault.to ?? Number.POSITIVE_INFINITY) >= from,
    );
  }

  /** When a thing that is due at a time is done, if faults of these kinds hold it up one after the other. */
  doneBy(kinds: readonly FaultKind[], due: number): number {
    const holding = this.past.find(
      ({ kind, from, to }) => kinds.includes(kind) && from <= due && (to ?? Number.POSITIVE_INFINITY) > due,
    );
    // Redis is called again within a second of the end.
    return holding === undefined ? due : this.doneBy(kinds, (holding.to ?? Date.now()) + 1000);
  }

  /** The faults of a span of time, as they are told: `kind of part at from-to`, in ms since its beginning. */
  describe(from: number, to: number): string {
    const faults = this.past.filter((fault) => fault.from <= to && (fault.to ?? Number.POSITIVE_INFINITY) >= from);
    return faults
      .map((fault) => `${fault.kind} of ${fault.part} at ${fault.from - from}-${(fault.to ?? 0) - from}`)
      .join(', ');
  }

  /** Whether any has begun before that time. */
  hasAny(before: number): boolean {
    return this.past.some(({ from }) => from <= before);
  }

  /** How many there were of each kind. */
  counts(): Record<string, number> {
    const counts: Record<string, number> = {};
    for (const { kind } of this.past) counts[kind] = (counts[kind] ?? 0) + 1;
    return counts;
  }
}
