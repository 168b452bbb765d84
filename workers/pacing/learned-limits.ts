import type { CapacityLimits } from '../../shared/config/vendor-settings.ts';
import { vendorLimitsKey, workerKeys } from '../../shared/redis/keys.ts';
import type { RedisClient } from '../../shared/redis/redis.ts';
import type { RedisClock } from '../../shared/redis/redis-clock.ts';
import { isAhead, isAheadScript, loadScript } from '../../shared/redis/script.ts';
import type { Logger } from '../../shared/runtime/log.ts';
import { RepeatedRead } from '../../shared/runtime/repeated-read.ts';
import type { ToldLimits } from '../http/told-limits.ts';

const script = loadScript<string>(new URL('./learn-limit.lua', import.meta.url), isAheadScript);

/** How often what other workers have learned is read, in ms. */
const readMs = 5000;
/** How long a limit is remembered that was not met again, in ms. */
const rememberMs = 1_800_000;
/** Keys and models that are remembered: names of open vendors' models come from callers. */
const maxKnown = 1000;
/** How a limit grows each minute without a refusal, up to what the vendor has told; as in learn-limit.lua. */
export const increase = 1.25;

/** A vendor's key and the model that it is used for. */
export interface LimitedKey {
  readonly vendor: string;
  readonly account: string;
  readonly model: string;
}

interface Learned {
  /** In ms of `performance.now()`. */
  readonly until: number;
  readonly rpm: number | undefined;
  readonly tpm: number | undefined;
  /** By Redis's clock. */
  readonly at: number;
  /** The requests a minute that the vendor has told. */
  readonly promised: number | undefined;
}

/** Who is told what was learned. */
export interface LimitListener {
  /** A key is limited for a model, and not to be called for some ms: 0 if that is over. */
  limited(key: LimitedKey, ms: number): void;
  /** All that is known was read again. */
  read(): void;
}

/** What vendors' refusals have told of their capacity, shared by all workers. */
export class LearnedLimits {
  readonly #redis: RedisClient;
  readonly #clock: Pick<RedisClock, 'now'>;
  readonly #log: Pick<Logger, 'warn'>;
  readonly #reading: RepeatedRead;
  #listener: LimitListener | undefined;
  #known = new Map<string, Learned>();
  /** Names of the routes that have any. */
  #routes = new Set<string>();

  private constructor(redis: RedisClient, clock: Pick<RedisClock, 'now'>, log: Pick<Logger, 'warn'>) {
    this.#redis = redis;
    this.#clock = clock;
    this.#log = log;
    this.#reading = new RepeatedRead(
      readMs,
      () => this.#read(),
      (error) => log.warn({ err: error }, "reading vendors' limits failed"),
    );
  }

  /** Reads what is known: a new worker does not begin by trusting everything. */
  static async open(
    redis: RedisClient,
    clock: Pick<RedisClock, 'now'>,
    log: Pick<Logger, 'warn'>,
  ): Promise<LearnedLimits> {
    const learned = new LearnedLimits(redis, clock, log);
    await learned.read();
    return learned;
  }

  /** Tells of all limited keys, now and whenever they were read again. */
  tell(listener: LimitListener): void {
    this.#listener = listener;
    this.#tellAll();
  }

  /** Whether anything is known of a route. */
  has(vendor: string, model: string): boolean {
    return this.#routes.size > 0 && this.#routes.has(`${vendor}/${model}`);
  }

  /** The limits of a key for a model, as far as they were learned. */
  limitsOf(key: LimitedKey): CapacityLimits {
    const learned = this.#known.get(nameOf(key));
    if (learned === undefined) return {};
    const sinceMs = this.#clock.now() - learned.at;
    if (sinceMs > rememberMs) return {};
    const growth = increase ** Math.max(0, sinceMs / 60_000);
    const { rpm, tpm, promised = Number.POSITIVE_INFINITY } = learned;
    return { rpm: rpm && Math.max(1, Math.floor(Math.min(promised, rpm * growth))), tpm: tpm && Math.max(1, tpm) };
  }

  /**
   * Learns from a refusal.
   * @param ms for which the key is not to be called
   * @param asked calls a minute by this worker; the others are taken to have made as many
   */
  async learn(key: LimitedKey, ms: number, { rpm, tpm }: ToldLimits, asked: number): Promise<void> {
    const name = nameOf(key);
    try {
      const workers = await this.#redis.zcard(workerKeys.seen);
      const all = Math.ceil(asked * Math.max(1, workers));
      const args = [name, Math.ceil(ms), rpm ?? '', tpm ?? '', all, maxKnown, rememberMs];
      this.#take(name, await script(this.#redis, [vendorLimitsKey], args));
      this.#routes.add(`${key.vendor}/${key.model}`);
    } catch (error) {
      // This worker knows all the same that the key is limited.
      this.#log.warn({ err: error, vendor: key.vendor }, "keeping a vendor's limit failed");
    }
  }

  /** Reads what all workers have learned. */
  read(): Promise<void> {
    return this.#reading.now();
  }

  close(): void {
    this.#reading.close();
  }

  async #read(): Promise<void> {
    const all = await this.#redis.hgetall(vendorLimitsKey);
    this.#known = new Map();
    for (const [name, value] of Object.entries(all)) this.#take(name, value);
    this.#routes = new Set([...this.#known.keys()].map((name) => routeOf(keyOf(name))));
    this.#tellAll();
  }

  #tellAll(): void {
    const now = performance.now();
    for (const [name, { until }] of this.#known) this.#listener?.limited(keyOf(name), Math.max(0, until - now));
    this.#listener?.read();
  }

  #take(name: string, value: string): void {
    const [until, rpm, tpm, at, promised] = value.split(' ').map((word) => (word === '-' ? undefined : Number(word)));
    if (!Number.isFinite(until) || !Number.isFinite(at)) return;
    const local = performance.now() + (until as number) - this.#clock.now();
    const now = this.#clock.now();
    if (isAhead(at as number, now)) return;
    if (local < performance.now() && (at as number) + rememberMs < now) return;
    this.#known.set(name, { until: local, rpm, tpm, at: at as number, promised });
  }
}

/** Neither vendors nor keys have a space in their names. */
function nameOf({ vendor, account, model }: LimitedKey): string {
  return `${vendor} ${account} ${model}`;
}

function keyOf(name: string): LimitedKey {
  const [vendor = '', account = ''] = name.split(' ', 2);
  return { vendor, account, model: name.slice(vendor.length + account.length + 2) };
}

function routeOf({ vendor, model }: LimitedKey): string {
  return `${vendor}/${model}`;
}
