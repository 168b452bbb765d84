import type { ParsedUrlQuery } from 'node:querystring';
import type { ApiKey, KeyKind } from '../../../shared/accounts/api-keys.ts';
import {
  type CreatedKey,
  changeApiKey,
  createLimitedApiKey,
  type KeyChange,
  revokeApiKey,
  rotateApiKey,
} from '../../../shared/accounts/change-api-key.ts';
import { findApiKey, type KeyRange, listKeyPage } from '../../../shared/accounts/list-keys.ts';
import type { Database } from '../../../shared/database/database.ts';
import { ApiError } from '../../../shared/errors.ts';
import type { RedisClient } from '../../../shared/redis/redis.ts';
import { BoundedReads } from '../../bounds/bounded-reads.ts';
import { readPageQuery } from '../../http/page.ts';
import { readText } from '../../http/read-query.ts';
import { invalidParameter } from '../../pipeline/request-fields.ts';
import { type KeyObject, keyObject } from './key-object.ts';

/** Valid keys that an account may have. */
const maxKeys = 1000;
const pageLimits = { usual: 50, most: 200 };
/** Timeout for database and Redis together. */
const patienceMs = 10_000;

/** A page of keys, the newest first. */
export interface KeyPage {
  readonly object: 'list';
  readonly data: readonly KeyObject[];
  readonly has_more: boolean;
  /** The value of `after` for the next page. */
  readonly next: string | null;
}

/**
 * Operations of the console and operators on keys. A range selects whose keys are meant: any other key, and the playground's
 * hidden ones, get the same 404 as a missing one. A change that timed out may still take effect; repeating it is harmless.
 */
export class KeyAdministration {
  readonly #db: Database;
  readonly #redis: RedisClient;
  readonly #waits = new BoundedReads(patienceMs, 'API keys cannot be read or changed for now.');

  constructor(db: Database, redis: RedisClient) {
    this.#db = db;
    this.#redis = redis;
  }

  /** Lists a page by `limit`, `after` and `search`. @throws ApiError 400 that names the parameter, 404 for an unknown account, 503. */
  async list(range: KeyRange, query: ParsedUrlQuery): Promise<KeyPage> {
    const { limit, after } = readPageQuery(query, pageLimits);
    const search = readText(query, 'search');
    return await this.#waits.read(async () => {
      await this.#assertAccount(range.account);
      const last = after === undefined ? undefined : await findApiKey(this.#db, range, after);
      if (after !== undefined && last === undefined) {
        throw invalidParameter('after', "Invalid 'after': there is no key with this id.");
      }
      const keys = await listKeyPage(this.#db, range, { limit: limit + 1, after: last, search });
      const data = await Promise.all(keys.slice(0, limit).map((key) => keyObject(this.#redis, this.#db, key)));
      const hasMore = keys.length > limit;
      return { object: 'list', data, has_more: hasMore, next: hasMore ? (data.at(-1)?.id ?? null) : null };
    });
  }

  /** Creates a key, returned with its text. @throws ApiError 400 at the account's maximum, 404 for an unknown account, 503. */
  async create(account: string, name: string, settings: KeyChange, kind: KeyKind = 'standard'): Promise<KeyObject> {
    return await this.#waits.read(async () => {
      await this.#assertAccount(account);
      const created = await createLimitedApiKey(this.#db, { ...settings, accountId: account, name, kind }, maxKeys);
      if (created === undefined) {
        throw new ApiError('invalid_request_error', `There are ${maxKeys} API keys already: revoke one first.`);
      }
      return await this.#shown(created);
    });
  }

  /** Changes a key and returns it. @throws ApiError 400 for a revoked one, 404, 503. */
  async change(range: KeyRange, id: string, change: KeyChange): Promise<KeyObject> {
    return await this.#waits.read(async () => {
      const key = await this.#find(range, id);
      const changed = await changeApiKey(this.#db, this.#redis, key, change);
      if (changed === undefined) throw noLongerValid('has been revoked, and cannot be changed');
      return await keyObject(this.#redis, this.#db, changed);
    });
  }

  /** Revokes a key and returns it. Repeating it is harmless. @throws ApiError 404, 503. */
  async revoke(range: KeyRange, id: string): Promise<KeyObject> {
    return await this.#waits.read(async () => {
      await revokeApiKey(this.#db, this.#redis, await this.#find(range, id));
      return await keyObject(this.#redis, this.#db, await this.#find(range, id));
    });
  }

  /** Returns the replacement of a key, with its text. @throws ApiError 400 for a key that is no longer valid, and at the maximum, 404, 503. */
  async rotate(range: KeyRange, id: string, overlapMs: number): Promise<KeyObject> {
    return await this.#waits.read(async () => {
      const key = await this.#find(range, id);
      // Of one clock for all processes: by another one the overlap might be over at once.
      const [seconds] = await this.#redis.time();
      const created = await rotateApiKey(this.#db, this.#redis, key, overlapMs, maxKeys, Number(seconds) * 1000);
      if (created === undefined) throw noLongerValid('is no longer valid: make a new one');
      return await this.#shown(created);
    });
  }

  /** The only response with a key's text. */
  async #shown({ key, text }: CreatedKey): Promise<KeyObject> {
    return { ...(await keyObject(this.#redis, this.#db, key)), key: text };
  }

  async #find(range: KeyRange, id: string): Promise<ApiKey> {
    const key = await findApiKey(this.#db, range, id);
    if (key === undefined) throw new ApiError('not_found', 'There is no API key with this id.');
    return key;
  }

  async #assertAccount(account: string | undefined): Promise<void> {
    if (account === undefined) return;
    const row = await this.#db.selectFrom('accounts').select('id').where('id', '=', account).executeTakeFirst();
    if (row === undefined) throw new ApiError('not_found', 'There is no account with this id.');
  }
}

function noLongerValid(what: string): ApiError {
  return new ApiError('invalid_request_error', `This API key ${what}.`);
}
