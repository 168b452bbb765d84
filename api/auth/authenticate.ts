import type { Middleware } from 'koa';
import { keyStatus } from '../../shared/accounts/api-key.ts';
import { type ApiKey, ensureConsoleKey, findApiKeyByHash } from '../../shared/accounts/api-keys.ts';
import { announceKey } from '../../shared/accounts/change-api-key.ts';
import { writeKeyFlag } from '../../shared/accounts/key-flag.ts';
import { forgetKey, recallKey, rememberKey } from '../../shared/accounts/known-keys.ts';
import type { Database } from '../../shared/database/database.ts';
import { ApiError } from '../../shared/errors.ts';
import { hashApiKey } from '../../shared/ids.ts';
import { accountKeys } from '../../shared/redis/keys.ts';
import type { RedisClient } from '../../shared/redis/redis.ts';
import type { RedisClock } from '../../shared/redis/redis-clock.ts';
import { makeRoom } from '../../shared/runtime/collections.ts';
import type { Logger } from '../../shared/runtime/log.ts';
import { withTimeout } from '../../shared/runtime/with-timeout.ts';
import { BoundedReads } from '../bounds/bounded-reads.ts';
import { WrongKeys } from '../bounds/wrong-keys.ts';
import type { ForwardedHeaders } from '../http/trusted-proxies.ts';
import type { RedisWatch } from '../ledger/redis-watch.ts';
import type { State } from '../state.ts';
import { type Caller, callerOf, KeyUses, readKey } from './caller.ts';

const cachedCallers = 10_000;
/** Timeout for reading a key from the database. */
const lookUpMs = 2000;
/** Timeout of `assertActiveSoon`. */
const activeMs = 5000;

export interface CallerDirectoryOptions {
  readonly db: Database;
  readonly redis: RedisClient;
  readonly log: Logger;
  readonly watch: Pick<RedisWatch, 'isBehind'>;
  /** Keys expire by Redis's clock, in all processes at once. */
  readonly clock: Pick<RedisClock, 'now'>;
  /** Unknown keys that one network may try. */
  readonly wrongKeysPerMinute: number;
}

/**
 * Finds callers by their keys. A caller may be cached for long, because each request checks in Redis that it is current (in
 * `admit`, or here if nothing is admitted). Revocations and changes therefore need no message to arrive.
 */
export class CallerDirectory {
  readonly #db: Database;
  readonly #redis: RedisClient;
  readonly #log: Logger;
  readonly #watch: Pick<RedisWatch, 'isBehind'>;
  readonly #clock: Pick<RedisClock, 'now'>;
  readonly #uses: KeyUses;
  /** By the hash of the key. */
  readonly #callers = new Map<string, Caller>();
  /** Hashes of the playground's keys, by account. */
  readonly #consoleHashes = new Map<string, string>();
  readonly #lookUps = new BoundedReads(lookUpMs, 'API keys cannot be checked for now.');
  readonly #wrongKeys: WrongKeys;

  constructor({ db, redis, log, watch, clock, wrongKeysPerMinute }: CallerDirectoryOptions) {
    this.#db = db;
    this.#log = log;
    this.#watch = watch;
    this.#clock = clock;
    this.#wrongKeys = new WrongKeys(db, wrongKeysPerMinute);
    this.#redis = redis;
    this.#uses = new KeyUses(db, log);
  }

  /**
   * Returns the caller with this key.
   * @param from returns the network of the request, called if the key is unknown; undefined for a network that many share
   * @throws ApiError 401 when the key is unknown or has expired, 429 when too many wrong keys came from the network, 503
   * when neither the database nor Redis has it for now, or Redis may lack charges and revocations that only the database has.
   */
  async find(key: string, from?: () => string | undefined): Promise<Caller> {
    try {
      return await this.#find(hashApiKey(key), from);
    } catch (error) {
      throw showingKey(error, key);
    }
  }

  /** Checks the key again for what outlives a request, such as a socket: it may have expired since. @throws as `find` */
  async findAgain({ hash }: Caller): Promise<Caller> {
    return await this.#find(hash);
  }

  async #find(hash: string, from: () => string | undefined = () => undefined): Promise<Caller> {
    this.#assertRaised();
    let caller = this.#callers.get(hash);
    // The cached caller may be stale: the key's expiry may have been extended.
    if (caller === undefined || this.#isExpired(caller)) caller = await this.#lookUp(hash, from());
    this.#uses.note(caller.apiKeyId);
    return caller;
  }

  /**
   * Returns the account as caller by the hidden key of its playground, made on first use. Only for requests with a session.
   * @throws ApiError 503 when the database does not respond in time.
   */
  async consoleCallerOf(account: string): Promise<Caller> {
    this.#assertRaised();
    const known = this.#callers.get(this.#consoleHashes.get(account) ?? '');
    if (known !== undefined) return known;
    const apiKey = await this.#lookUps.read(() => ensureConsoleKey(this.#db, account));
    remember(this.#consoleHashes, account, apiKey.hash);
    return this.#keep(apiKey);
  }

  /**
   * Returns the current state of the caller, for requests that are not admitted.
   * @throws ApiError 401 when the key has been revoked or has expired.
   */
  async assertActive(caller: Caller): Promise<Caller> {
    const flag = await this.#redis.get(accountKeys.keyActive(caller.account, caller.apiKeyId));
    if (flag === '0') throw notValid();
    const current = flag === String(caller.revision) ? caller : await this.reload(caller);
    this.#assertNotExpired(current);
    return current;
  }

  /** Same as `assertActive`, for requests that nothing else bounds. @throws also ApiError 503 when Redis does not respond in time. */
  async assertActiveSoon(caller: Caller): Promise<Caller> {
    const current = await withTimeout(this.assertActive(caller), activeMs);
    if (current !== undefined) return current;
    const message = 'API keys cannot be checked for now. Try again later.';
    throw new ApiError('service_unavailable', message, { reason: 'queue_unavailable', retryAfterMs: 2000 });
  }

  /**
   * Reads the caller from the database, for this and later requests, and restores its flag in Redis. What was checked for
   * the old caller has to be checked again (see `assertInScope`).
   * @throws ApiError 401 when the key was revoked or has expired, 503 when the database does not respond in time.
   */
  async reload(caller: Caller): Promise<Caller> {
    this.#callers.delete(caller.hash);
    const current = await this.#lookUps.read(() => this.#announce(caller));
    if (current === undefined) throw notValid();
    const reloaded = this.#keep(current);
    this.#copy(rememberKey(this.#redis, current));
    this.#assertNotExpired(reloaded);
    return reloaded;
  }

  /** Writes a key's flag from the database unless Redis has a later one. A revocation always wins. */
  async restoreFlag(caller: Caller): Promise<void> {
    await this.#lookUps.read(() => this.#announce(caller));
  }

  /** Writes the latest uses of keys. */
  async close(): Promise<void> {
    await this.#uses.close();
  }

  /** Copies a key from the database to Redis and returns it, or undefined if it is no longer valid. */
  async #announce({ hash }: Caller): Promise<ApiKey | undefined> {
    const apiKey = await findApiKeyByHash(this.#db, hash);
    if (apiKey === undefined) return undefined;
    if (apiKey.revokedAt === undefined) return await announceKey(this.#db, this.#redis, apiKey);
    // The revocation did not reach Redis.
    await writeKeyFlag(this.#redis, apiKey, 0);
    this.#copy(forgetKey(this.#redis, hash));
    return undefined;
  }

  async #lookUp(hash: string, network: string | undefined): Promise<Caller> {
    if (network !== undefined) await this.#lookUps.read(() => this.#wrongKeys.assertMayTry(network, hash));
    try {
      const caller = await this.#read(hash);
      this.#assertNotExpired(caller);
      return caller;
    } catch (error) {
      const isWrong = error instanceof ApiError && error.code === 'invalid_api_key';
      if (isWrong && network !== undefined) this.#wrongKeys.note(network);
      throw error;
    }
  }

  async #read(hash: string): Promise<Caller> {
    let apiKey: ApiKey | undefined;
    try {
      apiKey = await this.#lookUps.read(() => findApiKeyByHash(this.#db, hash));
    } catch (error) {
      return this.#keep(await this.#recall(hash, error));
    }
    if (apiKey === undefined) throw notValid();
    if (apiKey.revokedAt !== undefined) {
      this.#copy(forgetKey(this.#redis, hash));
      throw notValid();
    }
    this.#copy(rememberKey(this.#redis, apiKey));
    return this.#keep(apiKey);
  }

  /**
   * Returns the key as another process has read it, while the database is away. Its flag in Redis decides whether that is
   * current, as for each cached caller. @throws `error` if it is unknown, or may have been extended since it expired.
   */
  async #recall(hash: string, error: unknown): Promise<ApiKey> {
    const apiKey = await recallKey(this.#redis, hash).catch(() => undefined);
    if (apiKey === undefined || keyStatus(apiKey, this.#clock.now()) !== 'active') throw error;
    return apiKey;
  }

  #isExpired({ expiresAt }: Caller): boolean {
    return expiresAt !== undefined && expiresAt <= this.#clock.now();
  }

  #assertNotExpired(caller: Caller): void {
    if (this.#isExpired(caller)) throw new ApiError('invalid_api_key', `${incorrectKey}. It has expired.`);
  }

  /** A failed copy is made by the next process that reads the key. */
  #copy(copied: Promise<void>): void {
    copied.catch((error) => this.#log.warn({ err: error }, 'copying an API key to Redis failed'));
  }

  #assertRaised(): void {
    if (!this.#watch.isBehind) return;
    const message =
      'Accounts cannot be checked for now: Redis was restarted, and is not yet compared with the database. Try again later.';
    throw new ApiError('service_unavailable', message, { retryAfterMs: 5000 });
  }

  #keep(apiKey: ApiKey): Caller {
    const caller = callerOf(apiKey);
    remember(this.#callers, caller.hash, caller);
    return caller;
  }
}

/** Adds an entry to a bounded map, which evicts its oldest entry. */
function remember<Value>(map: Map<string, Value>, key: string, value: Value): void {
  if (!map.has(key)) makeRoom(map, cachedCallers);
  map.set(key, value);
}

/** OpenAI's message, by which clients distinguish a wrong key from a bad request. */
const incorrectKey = 'Incorrect API key provided';

/** The 401 for a key that is unknown or revoked. */
export function notValid(): ApiError {
  return new ApiError('invalid_api_key', `${incorrectKey}. It is not valid, or has been revoked.`);
}

/** Adds as much of the key as OpenAI shows to this 401. Other errors stay as they are. */
function showingKey(error: unknown, key: string): unknown {
  if (!(error instanceof ApiError) || error.code !== 'invalid_api_key') return error;
  const shown = /^[\w-]{20,}$/.test(key) ? `${key.slice(0, 5)}***${key.slice(-2)}` : '***';
  return new ApiError(error.code, error.message.replace(incorrectKey, `${incorrectKey}: ${shown}`));
}

/**
 * Authenticates by `Authorization: Bearer …`, by `x-api-key` (Anthropic's clients), by `api-key` (Azure's clients), or by a
 * WebSocket's subprotocol, as browsers can set nothing else.
 * @throws ApiError 401, 403 for an operator key, which is for /admin/v1 only.
 */
export function authenticate(callers: CallerDirectory, forwarded: ForwardedHeaders): Middleware<State> {
  return async (ctx, next) => {
    const caller = await callers.find(readKey(ctx.headers), () => forwarded.callerNetwork(ctx.req));
    ctx.state.caller = caller;
    if (caller.kind === 'operator') {
      throw new ApiError('permission_denied', 'This is an operator key: it is for /admin/v1 only.');
    }
    await next();
  };
}

/** Refuses revoked keys, for routes that do not go through admission. */
export function requireActiveKey(callers: CallerDirectory): Middleware<State> {
  return async (ctx, next) => {
    ctx.state.caller = await callers.assertActiveSoon(ctx.state.caller);
    await next();
  };
}
