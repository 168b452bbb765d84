/** Share of the slots that steps leave to jobs that begin, and to tasks of vendors that have few of the slots. */
const keptShare = 0.1;

/** A vendor whose last step took longer than this (ms) holds up others. */
const slowMs = 1000;

/** What a step may do. */
export interface StepLimits {
  /** Whether it may fetch files, which it asks at most once. */
  readonly mayFetch: () => boolean;
  /** Whether its slot is kept for others, so that it must be over soon: how long its vendor takes is not known before. */
  readonly isHurried: boolean;
}

/** Steps of one vendor's tasks. */
interface VendorSteps {
  running: number;
  /** How many of them fetch files. */
  fetching: number;
  /** How long the last one took, in ms. */
  lastMs: number;
}

/**
 * The steps of vendors' tasks that a process takes: polls, and the fetching of files. What returns to its queue precedes what is new
 * there, so the tasks of a vendor that answers late or never would have all slots of all workers, and those of other vendors would
 * neither begin nor end. So the last tenth of the slots is for others, but for steps of a vendor that was quick, which end soon or are
 * ended. Whether files come quickly is not known before, whatever the polls beside them take, so their fetching leaves these slots in any
 * case.
 */
export class TaskSteps {
  readonly #max: number;
  readonly #kept: number;
  #running = 0;
  #fetching = 0;
  /** By vendor. */
  readonly #steps = new Map<string, VendorSteps>();

  /** @param slots tasks that a process begins or steps at a time */
  constructor(slots: number) {
    // Of a single slot none can be kept.
    this.#kept = slots === 1 ? 0 : Math.ceil(slots * keptShare);
    this.#max = slots - this.#kept;
  }

  /** Takes a step; returns undefined if it is to be taken later, as its vendor has its part of the slots. */
  async run<T>(vendor: string, step: (limits: StepLimits) => Promise<T>): Promise<T | undefined> {
    const own = this.#steps.get(vendor) ?? { running: 0, fetching: 0, lastMs: 0 };
    this.#steps.set(vendor, own);
    const isHurried = this.#running >= this.#max && own.running >= this.#kept;
    if (isHurried && own.lastMs > slowMs) return undefined;
    const beganAt = performance.now();
    let fetching = 0;
    const mayFetch = (): boolean => {
      if (this.#fetching >= this.#max && own.fetching >= this.#kept) return false;
      fetching++;
      this.#fetching++;
      own.fetching++;
      return true;
    };
    this.#running++;
    own.running++;
    try {
      return await step({ mayFetch, isHurried });
    } finally {
      this.#running--;
      own.running--;
      this.#fetching -= fetching;
      own.fetching -= fetching;
      own.lastMs = performance.now() - beganAt;
    }
  }
}
