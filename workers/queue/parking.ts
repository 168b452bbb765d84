import type { Capability } from '../../shared/capabilities/capability.ts';
import {
  maxReleased,
  type ParkCall,
  type ParkedJobs,
  type ParkedRoute,
  type ParkReply,
} from '../../shared/queue/parking/parked-jobs.ts';
import type { Logger } from '../../shared/runtime/log.ts';
import { withTimeout } from '../../shared/runtime/with-timeout.ts';
import type { VendorLines } from './vendor-lines.ts';

/** How often jobs are released at most, in ms. */
const minIntervalMs = 50;
/** How often jobs are looked for that another worker has parked, which may be gone, in ms. */
const searchMs = 3000;
/** How long a release under way may take when the worker closes, in ms. */
const closeMs = 1000;

/** Parks the jobs of one queue, and releases all that are due, whichever worker has parked them. */
export class Parking {
  readonly #jobs: ParkedJobs;
  readonly #log: Pick<Logger, 'warn'>;
  readonly #capability: Capability;
  readonly #lines: VendorLines;
  #routes: ReadonlyMap<string, ParkedRoute> = new Map();
  #timer: NodeJS.Timeout | undefined;
  #dueAt = Number.POSITIVE_INFINITY;
  /** Routes with capacity, and for how many jobs. */
  #ready = new Map<string, number>();
  /** The same of routes that perhaps have some, after those. */
  #maybeReady = new Map<string, number>();
  #releasing: Promise<void> | undefined;
  #reconsidering: NodeJS.Timeout | undefined;
  #isClosed = false;

  /** @param lines those of all queues of this worker */
  constructor(capability: Capability, jobs: ParkedJobs, log: Pick<Logger, 'warn'>, lines: VendorLines) {
    this.#capability = capability;
    this.#lines = lines;
    lines.add(this);
    this.#jobs = jobs;
    this.#log = log;
    this.#schedule(searchMs);
  }

  /** The jobs that wait for a route, as far as this worker knows; undefined if none do. */
  lineOf(route: string): ParkedRoute | undefined {
    return this.#routes.get(route);
  }

  /** Parks a claimed job. */
  async park(call: ParkCall): Promise<ParkReply> {
    const reply = await this.#jobs.park(call);
    if (reply.verdict !== 'parked') return reply;
    const { route, intervalMs = 0 } = call;
    const line = { route, nextMs: reply.ms, waiting: reply.waiting, intervalMs };
    this.#routes = new Map(this.#routes).set(route, { ...line, ...knownPace(this.#routes.get(route)) });
    this.#schedule(reply.ms);
    return reply;
  }

  /**
   * The route has capacity for one more job than are released by its pace: a call has ended, or could start at once.
   * @param of `vendor`: it may be that of another route of the vendor
   */
  hasCapacity(route: string, of: 'route' | 'vendor' = 'route'): void {
    if (of === 'vendor') {
      this.#lines.hasCapacity(this, route);
      return;
    }
    if (!this.#routes.has(route)) return;
    this.#ready.set(route, (this.#ready.get(route) ?? 0) + 1);
    this.#schedule(0);
  }

  /** The same, if those that `hasCapacity` names leave it. */
  mayHaveCapacity(route: string): void {
    if (!this.#routes.has(route)) return;
    this.#maybeReady.set(route, (this.#maybeReady.get(route) ?? 0) + 1);
    this.#schedule(0);
  }

  /** Routes of a vendor that jobs wait for, as far as this worker knows. */
  routesOf(vendor: string): string[] {
    return [...this.#routes.keys()].filter((route) => route.startsWith(`${vendor}/`));
  }

  /**
   * The limits of vendors, or the routes of models, have changed. Lines keep the pace of the old ones, so all jobs of a route that has
   * none now are released, and one of each other line, which finds out what capacity there is. Once more a little later: jobs may just
   * have been on their way into a line, here or in a worker that has the new limits later.
   * @param isLimited whether a route has limits now, and is still all that its models have
   */
  async reconsider(isLimited: (route: string) => boolean): Promise<void> {
    clearTimeout(this.#reconsidering);
    await this.#releaseUnlimited(isLimited);
    if (this.#isClosed) return;
    this.#reconsidering = setTimeout(() => void this.#releaseUnlimited(isLimited), searchMs);
    this.#reconsidering.unref();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    clearTimeout(this.#reconsidering);
    // Where Redis is away, it would be waited for without end.
    await withTimeout(Promise.resolve(this.#releasing), closeMs);
  }

  #schedule(ms: number): void {
    const inMs = Math.max(minIntervalMs, Math.min(ms, searchMs));
    const dueAt = performance.now() + inMs;
    if (this.#isClosed || dueAt >= this.#dueAt) return;
    clearTimeout(this.#timer);
    this.#dueAt = dueAt;
    this.#timer = setTimeout(() => void this.#release(), inMs);
    this.#timer.unref();
  }

  async #release(): Promise<void> {
    this.#dueAt = Number.POSITIVE_INFINITY;
    // One under way looks again once it is over.
    if (this.#releasing !== undefined) return;
    this.#releasing = this.#releaseDue();
    await this.#releasing;
    this.#releasing = undefined;
    const isReady = this.#ready.size + this.#maybeReady.size > 0;
    this.#schedule(isReady ? 0 : Math.min(searchMs, ...[...this.#routes.values()].map(({ nextMs }) => nextMs)));
  }

  async #releaseUnlimited(isLimited: (route: string) => boolean): Promise<void> {
    try {
      for (const { route, waiting } of await this.#jobs.unpark()) {
        const released = isLimited(route) ? 1 : waiting;
        for (let left = released; left > 0; left -= maxReleased) {
          await this.#jobs.unpark(new Map([[route, Math.min(left, maxReleased)]]));
        }
      }
    } catch (error) {
      this.#log.warn({ err: error, capability: this.#capability }, 'releasing parked jobs failed');
    }
  }

  async #releaseDue(): Promise<void> {
    const ready = [...this.#ready, ...this.#maybeReady];
    this.#ready = new Map();
    this.#maybeReady = new Map();
    try {
      const routes = await this.#jobs.unpark(ready);
      this.#routes = new Map(routes.map((each) => [each.route, each]));
    } catch (error) {
      // They are still there at the next search.
      this.#log.warn({ err: error, capability: this.#capability }, 'releasing parked jobs failed');
      this.#routes = new Map();
    }
  }
}

/** What the jobs of a line take, as it was last read: that of one job says little of the others. */
function knownPace(line: ParkedRoute | undefined): Partial<ParkedRoute> {
  return line === undefined || line.intervalMs === 0 ? {} : { intervalMs: line.intervalMs };
}
