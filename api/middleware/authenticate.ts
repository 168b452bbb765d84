import type { IncomingHttpHeaders } from 'node:http';
import type { Middleware } from 'koa';
import { type ApiKey, findApiKeyByHash, hashApiKey, type UnsupportedParameters } from '../../shared/api-keys.ts';
import type { Database } from '../../shared/database/database.ts';
import { ApiError } from '../../shared/errors.ts';
import { accountKeys } from '../../shared/keys.ts';
import type { RedisClient } from '../../shared/redis.ts';
import { BoundedReads } from '../bounded-reads.ts';
import type { State } from '../state.ts';

/** Who calls: an account by one of its API keys. */
export interface Caller {
  readonly account: string;
  readonly apiKeyId: string;
  /** SHA-256 of the key, by which the database knows it. */
  readonly hash: string;
  /** Unfinished jobs the key may have; undefined: the gateway's default. */
  readonly concurrency: number | undefined;
  readonly onDisconnect: 'cancel' | 'continue' | undefined;
  /** Undefined: such parameters are refused. */
  readonly unsupportedParameters: UnsupportedParameters | undefined;
}

const cachedCallers = 10_000;
/** How long the database may take to show a key. */
const lookUpMs = 2000;

/**
 * Finds callers by their keys. What a key is may be remembered for long, because whether it is still active is asked of
 * Redis with every request (in `admit`, or here where nothing is admitted): revoking needs no message to arrive.
 */
export class CallerDirectory {
  readonly #db: Database;
  readonly #redis: RedisClient;
  readonly #callers = new Map<string, Caller>();
  readonly #lookUps = new BoundedReads(lookUpMs, 'API keys cannot be checked for now.');

  constructor(db: Database, redis: RedisClient) {
    this.#db = db;
    this.#redis = redis;
  }

  /** The caller with this key. @throws ApiError 401 when there is none, 503 when the database does not answer in time. */
  async find(key: string): Promise<Caller> {
    const hash = hashApiKey(key);
    const known = this.#callers.get(hash);
    if (known !== undefined) return known;
    const apiKey = await this.#lookUp(hash);
    if (apiKey === undefined) throw notValid();
    const caller: Caller = {
      account: apiKey.accountId,
      apiKeyId: apiKey.id,
      hash,
      concurrency: apiKey.concurrency,
      onDisconnect: apiKey.onDisconnect,
      unsupportedParameters: apiKey.unsupportedParameters,
    };
    if (this.#callers.size >= cachedCallers) this.#callers.delete(this.#callers.keys().next().value as string);
    this.#callers.set(hash, caller);
    return caller;
  }

  /** @throws ApiError 401 when the key has been revoked. For requests that are not admitted. */
  async assertActive(caller: Caller): Promise<void> {
    const flagKey = accountKeys.keyActive(caller.account, caller.apiKeyId);
    let flag = await this.#redis.get(flagKey);
    if (flag === null) {
      await this.restoreFlag(caller);
      flag = await this.#redis.get(flagKey);
    }
    if (flag !== '1') throw notValid();
  }

  /** Writes a key's active flag from the database, unless Redis has one by now: a revocation always stands. */
  async restoreFlag(caller: Caller): Promise<void> {
    const apiKey = await this.#lookUp(caller.hash);
    if (apiKey === undefined) return;
    await this.#redis.set(accountKeys.keyActive(caller.account, caller.apiKeyId), '1', 'NX');
  }

  async #lookUp(hash: string): Promise<ApiKey | undefined> {
    const apiKey = await this.#lookUps.read(() => findApiKeyByHash(this.#db, hash));
    return apiKey?.revokedAt === undefined ? apiKey : undefined;
  }
}

function notValid(): ApiError {
  return new ApiError('invalid_api_key', 'The API key is not valid, or has been revoked.');
}

/**
 * Knows the caller by `Authorization: Bearer …`, by `x-api-key`, which Anthropic's clients send, or by a WebSocket's
 * subprotocol, as browsers can set nothing else.
 * @throws ApiError 401.
 */
export function authenticate(callers: CallerDirectory): Middleware<State> {
  return async (ctx, next) => {
    ctx.state.caller = await callers.find(readKey(ctx.headers));
    await next();
  };
}

/** Also refuses revoked keys; for routes that do not go through admission. */
export function requireActiveKey(callers: CallerDirectory): Middleware<State> {
  return async (ctx, next) => {
    await callers.assertActive(ctx.state.caller);
    await next();
  };
}

function readKey(headers: IncomingHttpHeaders): string {
  const { authorization, 'x-api-key': apiKey } = headers;
  if (authorization === undefined && typeof apiKey === 'string' && apiKey !== '') return apiKey.trim();
  const protocolKey = readProtocolKey(headers['sec-websocket-protocol']);
  if (authorization === undefined && protocolKey !== undefined) return protocolKey;
  if (authorization === undefined || authorization === '') {
    throw new ApiError(
      'invalid_api_key',
      "You didn't provide an API key. Send it as a header: Authorization: Bearer YOUR_KEY.",
    );
  }
  const key = /^Bearer +(\S+) *$/i.exec(authorization)?.[1];
  if (key === undefined) {
    throw new ApiError('invalid_api_key', 'The Authorization header is malformed: it must be "Bearer YOUR_KEY".');
  }
  return key;
}

const keyProtocol = 'openai-insecure-api-key.';

/** The key among a WebSocket's offered subprotocols. OpenAI's name for it, and its word for who can see the key. */
function readProtocolKey(offered: string | undefined): string | undefined {
  const protocols = offered?.split(',').map((name) => name.trim());
  return protocols?.find((name) => name.startsWith(keyProtocol))?.slice(keyProtocol.length);
}
