import { vendorHealthKey } from '../../shared/redis/keys.ts';
import type { RedisClient } from '../../shared/redis/redis.ts';
import type { RedisClock } from '../../shared/redis/redis-clock.ts';
import { isAhead } from '../../shared/redis/script.ts';
import type { Logger } from '../../shared/runtime/log.ts';
import { RepeatedRead } from '../../shared/runtime/repeated-read.ts';

/** How often what other workers have told is read, in ms. */
const readMs = 5000;
/** Maximum number of routes and keys: names of open vendors' models come from callers. */
const maxKnown = 1000;
/** Whatever is told, it is over after this time, in ms. */
const maxPauseMs = 3_600_000;
/** How long ago a pause must have ended to be removed by whoever reads it, in ms: it may just be prolonged. */
const staleMs = 60_000;

/** A key that its vendor has refused: for a model, or altogether. */
export interface RefusedKey {
  readonly vendor: string;
  readonly account: string;
  readonly model: string | undefined;
}

/** Who is told what other workers have found. */
export interface HealthListener {
  /** Routes that are paused, with ms: no others are. */
  paused(routes: ReadonlyMap<string, number>): void;
  refused(key: RefusedKey, ms: number): void;
}

/** Paused routes and refused keys, shared by all workers: a new one does not begin by trusting everything. */
export class SharedHealth {
  readonly #redis: RedisClient;
  readonly #clock: Pick<RedisClock, 'now'>;
  readonly #log: Pick<Logger, 'warn'>;
  readonly #reading: RepeatedRead;
  #listener: HealthListener | undefined;
  #known: Readonly<Record<string, string>> = {};

  private constructor(redis: RedisClient, clock: Pick<RedisClock, 'now'>, log: Pick<Logger, 'warn'>) {
    this.#redis = redis;
    this.#clock = clock;
    this.#log = log;
    this.#reading = new RepeatedRead(
      readMs,
      () => this.#read(),
      (error) => this.#logFailure(error),
    );
  }

  static async open(
    redis: RedisClient,
    clock: Pick<RedisClock, 'now'>,
    log: Pick<Logger, 'warn'>,
  ): Promise<SharedHealth> {
    const health = new SharedHealth(redis, clock, log);
    await health.read();
    return health;
  }

  /** Tells what is known now, and from now on whenever it was read. */
  tell(listener: HealthListener): void {
    this.#listener = listener;
    this.#tell();
  }

  /** A route is not to be called for some ms. */
  pause(route: string, ms: number): void {
    this.#write(`route ${route}`, ms);
  }

  /** A route is healthy again. */
  resume(route: string): void {
    this.#redis.hdel(vendorHealthKey, `route ${route}`).catch((error) => this.#logFailure(error));
  }

  /** A key is not to be used for some ms. */
  refuse({ vendor, account, model }: RefusedKey, ms: number): void {
    this.#write(`key ${vendor} ${account}${model === undefined ? '' : ` ${model}`}`, ms);
  }

  /** Reads what all workers have found. */
  read(): Promise<void> {
    return this.#reading.now();
  }

  close(): void {
    this.#reading.close();
  }

  #write(name: string, ms: number): void {
    const isNew = !Object.hasOwn(this.#known, name);
    if (isNew && Object.keys(this.#known).length >= maxKnown) return;
    const until = this.#clock.now() + Math.min(ms, maxPauseMs);
    this.#redis
      .pipeline()
      .hset(vendorHealthKey, name, until)
      .pexpire(vendorHealthKey, 2 * maxPauseMs)
      .exec()
      .catch((error) => this.#logFailure(error));
  }

  async #read(): Promise<void> {
    this.#known = await this.#redis.hgetall(vendorHealthKey);
    this.#tell();
    const now = this.#clock.now();
    const stale = Object.entries(this.#known).flatMap(([name, until]) =>
      Number(until) > now - staleMs && !isNotedAhead(Number(until), now) ? [] : [name],
    );
    if (stale.length > 0) await this.#redis.hdel(vendorHealthKey, ...stale);
  }

  #tell(): void {
    if (this.#listener === undefined) return;
    const now = this.#clock.now();
    const routes = new Map<string, number>();
    for (const [name, until] of Object.entries(this.#known)) {
      const ms = Math.min(Number(until) - now, maxPauseMs);
      if (!(ms > 0) || isNotedAhead(Number(until), now)) continue;
      const [kind, first = '', second = ''] = name.split(' ', 3);
      if (kind === 'route') routes.set(name.slice('route '.length), ms);
      if (kind !== 'key') continue;
      const model = name.slice(`key ${first} ${second} `.length) || undefined;
      this.#listener.refused({ vendor: first, account: second, model }, ms);
    }
    this.#listener.paused(routes);
  }

  #logFailure(error: unknown): void {
    this.#log.warn({ err: error }, "sharing vendors' health failed");
  }
}

/** Whether a pause was noted while Redis's clock was ahead: none is that long. */
function isNotedAhead(until: number, now: number): boolean {
  return isAhead(until, now + maxPauseMs);
}
