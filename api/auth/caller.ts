import type { IncomingHttpHeaders } from 'node:http';
import type { ApiKey, KeyKind, KeySettings } from '../../shared/accounts/api-keys.ts';
import type { Capability } from '../../shared/capabilities/capability.ts';
import type { Database } from '../../shared/database/database.ts';
import { ApiError } from '../../shared/errors.ts';
import { makeRoom } from '../../shared/runtime/collections.ts';
import type { Logger } from '../../shared/runtime/log.ts';

/** The caller: an account and one of its API keys, with the key's settings. */
export interface Caller extends KeySettings {
  readonly account: string;
  readonly apiKeyId: string;
  /** SHA-256 of the key, by which the database finds it. */
  readonly hash: string;
  readonly kind: KeyKind;
  /** The key's revision when it was read. A different one in Redis means that this caller is stale. */
  readonly revision: number;
  /** As of `ApiKey`. */
  readonly budgetId?: string | undefined;
}

/** The caller with a key, as a request needs it. */
export function callerOf(key: ApiKey): Caller {
  return {
    account: key.accountId,
    apiKeyId: key.id,
    hash: key.hash,
    kind: key.kind,
    revision: key.revision,
    expiresAt: key.expiresAt,
    capabilities: key.capabilities,
    models: key.models,
    rpm: key.rpm,
    tpm: key.tpm,
    modelLimits: key.modelLimits,
    budget: key.budget,
    budgetId: key.budgetId,
    concurrency: key.concurrency,
    onDisconnect: key.onDisconnect,
    unsupportedParameters: key.unsupportedParameters,
    cacheBreakpoints: key.cacheBreakpoints,
    priority: key.priority,
    maxPriority: key.maxPriority,
    singleFlight: key.singleFlight,
    cacheSeconds: key.cacheSeconds,
    vendorIds: key.vendorIds,
  };
}

/** Returns the API key of a request. @throws ApiError 401. */
export function readKey(headers: IncomingHttpHeaders): string {
  const { authorization } = headers;
  const apiKey = headers['x-api-key'] || headers['api-key'];
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

/** Begins a WebSocket's subprotocol that is a key. */
const keyProtocol = 'openai-insecure-api-key.';

/** Returns the key among a WebSocket's offered subprotocols. Both the prefix and its warning are OpenAI's. */
function readProtocolKey(offered: string | undefined): string | undefined {
  const protocols = offered?.split(',').map((name) => name.trim());
  return protocols?.find((name) => name.startsWith(keyProtocol))?.slice(keyProtocol.length);
}

/** The restrictions of a key. */
export type KeyScopes = Pick<KeySettings, 'capabilities' | 'models'>;

/** A requested model by the id in the request, and its capability. */
export interface WantedModel {
  readonly id: string;
  readonly capability: Capability;
}

/** Whether a key may use a model. */
export function isInScope(scopes: KeyScopes, wanted: WantedModel | undefined): boolean {
  return wanted !== undefined && mayUseCapability(scopes, wanted.capability) && mayUseModel(scopes, wanted.id);
}

/**
 * Checks a model against a key's scope. The error names the model: models are no secret (the price list shows them), and a
 * 404 would make the caller look for a spelling mistake. Fallbacks of a permitted model are the operator's choice, and are
 * not checked.
 * @throws ApiError 403 that names what is not allowed.
 */
export function assertInScope(scopes: KeyScopes, wanted: WantedModel): void {
  if (!mayUseCapability(scopes, wanted.capability)) {
    throw new ApiError(
      'permission_denied',
      `This API key may not be used for the capability \`${wanted.capability}\`.`,
    );
  }
  if (!mayUseModel(scopes, wanted.id)) {
    throw new ApiError('permission_denied', `This API key may not use the model \`${wanted.id}\`.`, { param: 'model' });
  }
}

/**
 * Fields in which vendors that pass requests on (OpenRouter, LiteLLM) take further models, for when the first one fails, or what stands
 * behind the name of each.
 */
const furtherModels = new Set([
  ...['models', 'fallbacks', 'context_window_fallbacks', 'content_policy_fallbacks'],
  ...['user_config', 'model_list'],
]);

/**
 * Refuses a request that names further models, with a key for some models only: they are the vendor's, whose names do not compare. Those
 * of a tool, such as that of images, are allowed if the key lists them.
 * @param fields those of the request, and tools, that are not known to be free
 * @throws ApiError 403 that names the field.
 */
export function assertOneModel(
  scopes: Pick<KeyScopes, 'models'>,
  fields: readonly { readonly name: string; readonly param: string; readonly models?: readonly string[] }[] = [],
): void {
  if (scopes.models === undefined) return;
  const refused = fields.find(
    ({ name, models = [] }) => furtherModels.has(name) || models.some((id) => !mayUseModel(scopes, id)),
  );
  if (refused === undefined) return;
  const { param } = refused;
  const message = `This API key may only use the models that it lists, so '${param}' cannot name others.`;
  throw new ApiError('permission_denied', message, { param });
}

function mayUseCapability({ capabilities }: KeyScopes, capability: Capability): boolean {
  return capabilities === undefined || capabilities.includes(capability);
}

function mayUseModel({ models }: Pick<KeyScopes, 'models'>, id: string): boolean {
  if (models === undefined) return true;
  return models.some((model) => (model.endsWith('*') ? id.startsWith(model.slice(0, -1)) : id === model));
}

/** Minimum interval between two writes of a key's use. */
const intervalMs = 60_000;
/** Batch window for uses. */
const gatherMs = 1000;
/** Maximum number of remembered keys, and of keys waiting for a write. */
const maxKeys = 10_000;
/** Maximum ids in one statement. */
const batchSize = 500;

/**
 * Records when keys were last used, for display. Writes never delay a request: they are batched, at most once a minute for
 * each key, and failures are only logged.
 */
export class KeyUses {
  readonly #db: Database;
  readonly #log: Logger;
  /** Time of a key's last noted use by its id, the oldest first. */
  readonly #noted = new Map<string, number>();
  #pending = new Set<string>();
  #timer: NodeJS.Timeout | undefined;
  #writing: Promise<void> | undefined;
  #isClosed = false;

  constructor(db: Database, log: Logger) {
    this.#db = db;
    this.#log = log;
  }

  /** Notes a use of the key. */
  note(id: string): void {
    const now = Date.now();
    const last = this.#noted.get(id);
    if (this.#isClosed || (last !== undefined && now - last < intervalMs) || this.#pending.size >= maxKeys) return;
    this.#noted.delete(id);
    makeRoom(this.#noted, maxKeys);
    this.#noted.set(id, now);
    this.#pending.add(id);
    this.#arm();
  }

  /** Writes pending uses. */
  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    await this.#writing;
    await this.#write();
  }

  #arm(): void {
    if (this.#timer !== undefined || this.#writing !== undefined || this.#isClosed) return;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#writing = this.#write().finally(() => {
        this.#writing = undefined;
        // Uses noted during the write.
        if (this.#pending.size > 0) this.#arm();
      });
    }, gatherMs);
    this.#timer.unref();
  }

  async #write(): Promise<void> {
    const ids = [...this.#pending];
    this.#pending = new Set();
    // The batch window is short: one time is exact enough for all.
    const now = Date.now();
    try {
      for (let start = 0; start < ids.length; start += batchSize) {
        await this.#db
          .updateTable('api_keys')
          .set({ last_used_at: now })
          .where('id', 'in', ids.slice(start, start + batchSize))
          .where((is) => is.or([is('last_used_at', 'is', null), is('last_used_at', '<', now)]))
          .execute();
      }
    } catch (error) {
      this.#log.debug({ err: error }, 'writing the last-used times of keys failed');
      for (const id of ids) this.#noted.delete(id);
    }
  }
}
