/** A look at a queue. */
export interface QueueSample {
  /** When, in ms of `performance.now()`. */
  readonly at: number;
  /** Whether jobs wait, and longer than their hand-over takes. */
  readonly isBackedUp: boolean;
  readonly waiting: number;
  /** Jobs that workers have claimed and not ended. */
  readonly active: number;
  /** Number of jobs claimed so far while others waited. */
  readonly claimed: number;
  /** Number of waiting jobs of each account, of those that have a priority. */
  readonly lines: ReadonlyMap<string, number>;
}

/** The request whose wait is judged. Times are ms. */
export interface ForecastRequest {
  readonly account: string;
  /** The time, in ms of `performance.now()`. */
  readonly at: number;
  /** How long it may stay queued; infinite for work that nobody waits for. */
  readonly queueWaitMs: number;
  /** Time until its deadline, by which it has to be answered. */
  readonly deadlineMs: number;
  /** How long it may wait at most, if its caller has said so. */
  readonly startMs?: number | undefined;
}

/** Why a request is refused now. */
export interface ForecastRefusal {
  /** Whether the account's own jobs are the reason: those of another one would be accepted. */
  readonly isOwnLine: boolean;
  /** Predicted wait in ms. */
  readonly waitMs: number;
  /** Time in ms after which such a request is accepted if no others come. */
  readonly retryAfterMs: number;
}

/** Claims after which the rate counts as measured. */
const minClaims = 2;
/** The rate is measured over this time at least (ms), and over as many times the duration of a job, so that all slots turn over. */
const minMemoryMs = 10_000;
const memoryJobs = 4;
/** After this time (ms) without waiting jobs a measured rate is forgotten: there may be other workers by then. */
const forgottenMs = 60_000;
/** Share of the queue limit up to which waits are promised, as new jobs of other accounts come in between. */
const promised = 0.8;
/** Refusals of an account further apart than this (ms), and than the time that a job takes to leave the queue, are not persistent. */
const persistentMs = 500;
/** Maximum number of refused accounts that are remembered. */
const maxRefused = 10_000;

/**
 * Predicts how long a job of an account would wait: the jobs that are served before it, over the rate at which jobs are measured to leave it. In a fair queue
 * these are those of its own line, and of each other line as many. Without a measured rate (nothing has waited yet, or no worker
 * runs) nothing is predicted, and nothing refused.
 */
export class QueueForecast {
  readonly #targetMs: number;
  #sample: QueueSample | undefined;
  /** Waiting jobs by account, with those admitted here since the sample; in all; and without a priority. */
  #lines = new Map<string, number>();
  #waiting = 0;
  #untimed = 0;
  /** Jobs of all lines that precede the nth of a line, by n. */
  readonly #preceding = new Map<number, number>();
  /** Claims, and the time they took in ms; older ones count less. */
  #claims = 0;
  #measuredMs = 0;
  /** Time since the last claim. */
  #pendingMs = 0;
  #backedUpAt = Number.NEGATIVE_INFINITY;
  /** When an account's refusals began, and the last one. */
  readonly #refused = new Map<string, { since: number; last: number }>();

  /** @param targetMs wait to which accounts are kept while they are refused persistently */
  constructor(targetMs: number) {
    this.#targetMs = targetMs;
  }

  /** Jobs that leave the queue per ms while others wait; undefined if that is not known. */
  get rate(): number | undefined {
    if (this.#claims < minClaims) return undefined;
    // Jobs that began together end together: a pause between two claims counts only if it is longer than a job takes.
    const untilClaimMs = Math.max(1, this.#measuredMs - this.#pendingMs);
    const jobMs = ((this.#sample?.active ?? 0) * untilClaimMs) / this.#claims;
    return this.#claims / (untilClaimMs + Math.max(0, this.#pendingMs - jobMs));
  }

  /** Takes a look at the queue into account. */
  note(sample: QueueSample): void {
    const before = this.#sample;
    this.#sample = sample;
    this.#preceding.clear();
    if (!sample.isBackedUp) {
      this.#lines.clear();
      return;
    }
    if (sample.at - this.#backedUpAt > forgottenMs) this.#forgetRate();
    this.#backedUpAt = sample.at;
    if (before?.isBackedUp) this.#measure(before, sample);
    this.#lines = new Map(sample.lines);
    this.#waiting = sample.waiting;
    let inLines = 0;
    for (const count of sample.lines.values()) inLines += count;
    this.#untimed = Math.max(0, sample.waiting - inLines);
  }

  /** Counts a job that was just admitted. */
  added(account: string): void {
    if (!this.#sample?.isBackedUp) return;
    const count = (this.#lines.get(account) ?? 0) + 1;
    this.#lines.set(account, count);
    this.#waiting++;
    for (const [length, sum] of this.#preceding) if (count <= length) this.#preceding.set(length, sum + 1);
  }

  /** Predicted wait in ms of a new job of an account; undefined if that is not known. */
  waitOf(account: string): number | undefined {
    if (!this.#sample?.isBackedUp) return 0;
    const { rate } = this;
    if (rate === undefined) return undefined;
    // A line may seem longer than the queue while workers of the previous release run, which do not count it down.
    const own = Math.min(this.#lines.get(account) ?? 0, this.#waiting);
    return Math.min(this.#waiting, this.#untimed + this.#precedes(own + 1)) / rate;
  }

  /** Why a request has to be refused now; undefined if it need not. Notes the refusal. */
  refusal({
    account,
    at,
    queueWaitMs,
    deadlineMs,
    startMs = deadlineMs,
  }: ForecastRequest): ForecastRefusal | undefined {
    const { rate } = this;
    const waitMs = this.waitOf(account);
    if (!waitMs || rate === undefined) return undefined;
    // A claimed job takes as long as the slots need to be claimed anew; this one may be shorter.
    const jobMs = (this.#sample?.active ?? 0) / rate;
    const usualMs = Math.min(promised * queueWaitMs, startMs, Math.max(deadlineMs - jobMs, deadlineMs / 2));
    const isKeptShort = Number.isFinite(queueWaitMs) && this.#isPersistent(account, at);
    const boundMs = isKeptShort ? Math.min(usualMs, this.#targetMs) : usualMs;
    if (waitMs <= boundMs) return undefined;
    this.#noteRefused(account, at);
    const withoutLine = Math.min(this.#waiting, this.#untimed + this.#precedes(1)) / rate;
    return {
      isOwnLine: withoutLine <= usualMs,
      waitMs,
      retryAfterMs: Math.max(1000, Math.ceil(waitMs - boundMs)),
    };
  }

  #measure(before: QueueSample, { at, claimed, active }: QueueSample): void {
    const [elapsed, count] = [at - before.at, claimed - before.claimed];
    // Another Redis, or no worker that claims.
    if (count < 0 || (count === 0 && active === 0)) {
      this.#forgetRate();
      return;
    }
    const { rate } = this;
    const memoryMs = Math.max(minMemoryMs, rate === undefined ? 0 : (memoryJobs * active) / rate);
    const kept = rate === undefined ? 1 : Math.exp(-elapsed / memoryMs);
    this.#claims = this.#claims * kept + count;
    this.#measuredMs = this.#measuredMs * kept + elapsed;
    this.#pendingMs = count > 0 ? 0 : this.#pendingMs * kept + elapsed;
  }

  #forgetRate(): void {
    [this.#claims, this.#measuredMs, this.#pendingMs] = [0, 0, 0];
  }

  /** Jobs of all lines that are served before the nth of one. */
  #precedes(length: number): number {
    const known = this.#preceding.get(length);
    if (known !== undefined) return known;
    let sum = 0;
    for (const count of this.#lines.values()) sum += Math.min(count, length);
    this.#preceding.set(length, sum);
    return sum;
  }

  /** Whether an account has been refused for as long as the target, at least as often as a job leaves the queue. */
  #isPersistent(account: string, now: number): boolean {
    const refused = this.#refused.get(account);
    return refused !== undefined && refused.last - refused.since >= this.#targetMs && this.#continues(refused, now);
  }

  #continues({ last }: { last: number }, now: number): boolean {
    const jobMs = this.rate === undefined ? 0 : 1 / this.rate;
    return now - last <= Math.max(persistentMs, jobMs);
  }

  #noteRefused(account: string, now: number): void {
    const refused = this.#refused.get(account);
    if (refused !== undefined && this.#continues(refused, now)) refused.last = now;
    else {
      if (this.#refused.size >= maxRefused) this.#refused.clear();
      this.#refused.set(account, { since: now, last: now });
    }
  }
}
