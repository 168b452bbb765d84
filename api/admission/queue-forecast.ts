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
  /** The same of jobs of high priority, which are not among those. */
  readonly highLines: ReadonlyMap<string, number>;
}

/** The request whose wait is judged. Times are ms. */
export interface ForecastRequest {
  readonly account: string;
  /** Whether it is of high priority. */
  readonly isHigh: boolean;
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

/** How many jobs wait in the accounts' lines, and how many of them are served before one. */
class LineLengths {
  readonly #lengths: Map<string, number>;
  /** Jobs of all lines that precede the nth of a line, by n. */
  readonly #preceding = new Map<number, number>();
  #total = 0;

  constructor(lengths: ReadonlyMap<string, number>) {
    this.#lengths = new Map(lengths);
    for (const length of lengths.values()) this.#total += length;
  }

  get total(): number {
    return this.#total;
  }

  of(account: string): number {
    return this.#lengths.get(account) ?? 0;
  }

  add(account: string): void {
    const length = this.of(account) + 1;
    this.#lengths.set(account, length);
    this.#total++;
    for (const [place, sum] of this.#preceding) if (length <= place) this.#preceding.set(place, sum + 1);
  }

  /** Jobs of all lines that are served before the nth of one. */
  precede(place: number): number {
    const known = this.#preceding.get(place);
    if (known !== undefined) return known;
    let sum = 0;
    for (const length of this.#lengths.values()) sum += Math.min(length, place);
    this.#preceding.set(place, sum);
    return sum;
  }
}

const noLines = new LineLengths(new Map());

/**
 * Predicts how long a job of an account would wait: the jobs that are served before it, over the rate at which jobs are measured to leave it. In a fair queue
 * these are those of its own line, and of each other line as many. Without a measured rate (nothing has waited yet, or no worker
 * runs) nothing is predicted, and nothing refused. Jobs of high priority are served before others, up to their share of the claims.
 */
export class QueueForecast {
  readonly #targetMs: number;
  #sample: QueueSample | undefined;
  readonly #highShare: number;
  /** Waiting jobs by account, with those admitted here since the sample; of high priority; in all; and without a priority. */
  #lines = noLines;
  #high = noLines;
  #waiting = 0;
  #untimed = 0;
  /** Claims, and the time they took in ms; older ones count less. */
  #claims = 0;
  #measuredMs = 0;
  /** Time since the last claim. */
  #pendingMs = 0;
  #backedUpAt = Number.NEGATIVE_INFINITY;
  /** When the refusals of an account's line began, and the last one. */
  readonly #refused = new Map<string, { since: number; last: number }>();

  /**
   * @param targetMs wait to which accounts are kept while they are refused persistently
   * @param highShare share of the claims that jobs of high priority may have while others wait
   */
  constructor(targetMs: number, highShare: number) {
    this.#targetMs = targetMs;
    this.#highShare = highShare;
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
    if (!sample.isBackedUp) return;
    if (sample.at - this.#backedUpAt > forgottenMs) this.#forgetRate();
    this.#backedUpAt = sample.at;
    if (before?.isBackedUp) this.#measure(before, sample);
    this.#lines = new LineLengths(sample.lines);
    this.#high = new LineLengths(sample.highLines);
    this.#waiting = sample.waiting;
    this.#untimed = Math.max(0, sample.waiting - this.#lines.total - this.#high.total);
  }

  /** Counts a job that was just admitted. */
  added(account: string, isHigh = false): void {
    if (!this.#sample?.isBackedUp) return;
    (isHigh ? this.#high : this.#lines).add(account);
    this.#waiting++;
  }

  /** Predicted wait in ms of a new job of an account; undefined if that is not known. */
  waitOf(account: string, isHigh = false): number | undefined {
    if (!this.#sample?.isBackedUp) return 0;
    const { rate } = this;
    if (rate === undefined) return undefined;
    // A line may seem longer than the queue: jobs that other tools have removed are counted until they are met.
    const own = Math.min((isHigh ? this.#high : this.#lines).of(account), this.#waiting);
    return this.#before(own + 1, isHigh) / rate;
  }

  /** How many of the waiting jobs may be an account's at most; undefined if that is not known. */
  maxWaitingOf(account: string): number | undefined {
    if (!this.#sample?.isBackedUp) return undefined;
    return this.#untimed + this.#lines.of(account) + this.#high.of(account);
  }

  /** Jobs that are served before a new one, which is the nth of its line. */
  #before(place: number, isHigh: boolean): number {
    const high = Math.min(this.#high.total, this.#waiting);
    const others = this.#waiting - high;
    const share = this.#highShare;
    if (isHigh) {
      const before = Math.min(high, this.#high.precede(place));
      return before + Math.min(others, (before * (1 - share)) / share);
    }
    const before = Math.min(others, this.#untimed + this.#lines.precede(place));
    return before + Math.min(high, ((before + 1) * share) / (1 - share));
  }

  /** Why a request has to be refused now; undefined if it need not. Notes the refusal. */
  refusal({
    account,
    isHigh,
    at,
    queueWaitMs,
    deadlineMs,
    startMs = deadlineMs,
  }: ForecastRequest): ForecastRefusal | undefined {
    const { rate } = this;
    const waitMs = this.waitOf(account, isHigh);
    if (!waitMs || rate === undefined) return undefined;
    const line = isHigh ? `high ${account}` : account;
    // A claimed job takes as long as the slots need to be claimed anew; this one may be shorter.
    const jobMs = (this.#sample?.active ?? 0) / rate;
    const usualMs = Math.min(promised * queueWaitMs, startMs, Math.max(deadlineMs - jobMs, deadlineMs / 2));
    const isKeptShort = Number.isFinite(queueWaitMs) && this.#isPersistent(line, at);
    const boundMs = isKeptShort ? Math.min(usualMs, this.#targetMs) : usualMs;
    if (waitMs <= boundMs) return undefined;
    this.#noteRefused(line, at);
    const withoutLine = this.#before(1, isHigh) / rate;
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

  /** Whether requests for a line have been refused for as long as the target, at least as often as a job leaves the queue. */
  #isPersistent(line: string, now: number): boolean {
    const refused = this.#refused.get(line);
    return refused !== undefined && refused.last - refused.since >= this.#targetMs && this.#continues(refused, now);
  }

  #continues({ last }: { last: number }, now: number): boolean {
    const jobMs = this.rate === undefined ? 0 : 1 / this.rate;
    return now - last <= Math.max(persistentMs, jobMs);
  }

  #noteRefused(line: string, now: number): void {
    const refused = this.#refused.get(line);
    if (refused !== undefined && this.#continues(refused, now)) refused.last = now;
    else {
      if (this.#refused.size >= maxRefused) this.#refused.clear();
      this.#refused.set(line, { since: now, last: now });
    }
  }
}
