/** A task that waits for a resource shared by all accounts. */
export interface FairTask {
  readonly account: string;
  readonly bytes: number;
}

interface Lane<Task> {
  readonly tasks: Task[];
  bytes: number;
  /** The virtual time at which its next task may start. */
  start: number;
}

/** Bounds on the waiting tasks of all accounts together. */
export interface FairQueueLimits {
  readonly tasks: number;
  readonly bytes: number;
}

/** Idle accounts whose usage is remembered. */
const maxIdleLanes = 1000;

/**
 * A bounded queue with start-time fair queueing. The next task belongs to the account that has used the least time. A full
 * queue drops tasks of the account that fills most of it.
 */
export class FairQueue<Task extends FairTask> {
  readonly #limits: FairQueueLimits;
  readonly #lanes = new Map<string, Lane<Task>>();
  #clock = 0;
  #size = 0;
  #bytes = 0;

  constructor(limits: FairQueueLimits) {
    this.#limits = limits;
  }

  get size(): number {
    return this.#size;
  }

  /**
   * Adds a task.
   * @returns the dropped tasks: those of the account that fills most of the queue, or this one.
   */
  push(task: Task): Task[] {
    const lane = this.#lane(task.account);
    this.#add(lane, task);
    const dropped: Task[] = [];
    while (this.#size > this.#limits.tasks || this.#bytes > this.#limits.bytes) {
      const heaviest = [...this.#lanes.values()].reduce(
        (most, other) => (this.#weight(other) > this.#weight(most) ? other : most),
        lane,
      );
      const newest = heaviest.tasks.at(-1) as Task;
      this.#drop(heaviest, newest);
      dropped.push(newest);
    }
    return dropped;
  }

  /** Whether the account has waiting tasks. */
  has(account: string): boolean {
    return (this.#lanes.get(account)?.tasks.length ?? 0) > 0;
  }

  /** Removes and returns the next task of an account that `may` accepts. */
  take(may: (account: string) => boolean = () => true): Task | undefined {
    let next: Lane<Task> | undefined;
    for (const [account, lane] of this.#lanes) {
      if (lane.tasks.length > 0 && (next === undefined || lane.start < next.start) && may(account)) next = lane;
    }
    const task = next?.tasks[0];
    if (next === undefined || task === undefined) return undefined;
    this.#clock = Math.max(this.#clock, next.start);
    this.#drop(next, task);
    return task;
  }

  /** Charges the account for the time that a task took. */
  spend(account: string, ms: number): void {
    const lane = this.#lane(account);
    lane.start = Math.max(lane.start, this.#clock) + ms;
    this.#forgetIdle();
  }

  /** Removes a task if it still waits. */
  remove(task: Task): void {
    const lane = this.#lanes.get(task.account);
    if (lane?.tasks.includes(task)) this.#drop(lane, task);
  }

  /** Removes all tasks and returns them. */
  clear(): Task[] {
    const tasks = [...this.#lanes.values()].flatMap((lane) => lane.tasks);
    this.#lanes.clear();
    this.#size = 0;
    this.#bytes = 0;
    return tasks;
  }

  #lane(account: string): Lane<Task> {
    const known = this.#lanes.get(account);
    if (known !== undefined) {
      // An idle account accumulates no credit.
      if (known.tasks.length === 0) known.start = Math.max(known.start, this.#clock);
      return known;
    }
    const made: Lane<Task> = { tasks: [], bytes: 0, start: this.#clock };
    this.#lanes.set(account, made);
    return made;
  }

  #weight({ tasks, bytes }: Lane<Task>): number {
    return Math.max(tasks.length / this.#limits.tasks, bytes / this.#limits.bytes);
  }

  #add(lane: Lane<Task>, task: Task): void {
    lane.tasks.push(task);
    lane.bytes += task.bytes;
    this.#size++;
    this.#bytes += task.bytes;
  }

  #drop(lane: Lane<Task>, task: Task): void {
    lane.tasks.splice(lane.tasks.indexOf(task), 1);
    lane.bytes -= task.bytes;
    this.#size--;
    this.#bytes -= task.bytes;
  }

  #forgetIdle(): void {
    const isCrowded = this.#lanes.size > maxIdleLanes;
    for (const [account, { tasks, start }] of this.#lanes) {
      if (tasks.length === 0 && (isCrowded || start <= this.#clock)) this.#lanes.delete(account);
    }
  }
}
