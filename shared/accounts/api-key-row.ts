import { randomBytes } from 'node:crypto';
import type { Insertable, Selectable } from 'kysely';
import type { Capability } from '../capabilities/capability.ts';
import type { ApiKeysTable } from '../database/tables.ts';
import type { ApiKey, KeySettings, NewApiKey, RateLimits } from './api-key.ts';

/** The columns of the given settings only; a setting given as undefined becomes null. */
export function settingColumns(settings: Partial<KeySettings>): Partial<Insertable<ApiKeysTable>> {
  const { budget } = settings;
  const columns: [keyof KeySettings, Partial<Insertable<ApiKeysTable>>][] = [
    ['expiresAt', { expires_at: settings.expiresAt ?? null }],
    ['capabilities', { capabilities: json(settings.capabilities) }],
    ['models', { models: json(settings.models) }],
    ['rpm', { rpm: settings.rpm ?? null }],
    ['tpm', { tpm: settings.tpm ?? null }],
    ['modelLimits', { model_limits: json(settings.modelLimits) }],
    ['budget', { budget: budget?.amount ?? null, budget_period: budget?.period ?? null }],
    ['concurrency', { concurrency: settings.concurrency ?? null }],
    ['onDisconnect', { on_disconnect: settings.onDisconnect ?? null }],
    ['unsupportedParameters', { unsupported_parameters: settings.unsupportedParameters ?? null }],
    ['cacheBreakpoints', { cache_breakpoints: settings.cacheBreakpoints ?? null }],
    ['priority', { priority: settings.priority ?? null }],
    ['maxPriority', { max_priority: settings.maxPriority ?? null }],
    ['singleFlight', { single_flight: settings.singleFlight === undefined ? null : Number(settings.singleFlight) }],
    ['cacheSeconds', { cache_seconds: settings.cacheSeconds ?? null }],
    ['vendorIds', { vendor_ids: json(settings.vendorIds) }],
  ];
  return Object.assign({}, ...columns.filter(([name]) => Object.hasOwn(settings, name)).map(([, values]) => values));
}

/**
 * The row of a new key.
 * @param text its hash and prefix
 */
export function newKeyRow(text: { hash: string; prefix: string }, key: NewApiKey): Insertable<ApiKeysTable> {
  return {
    id: `key_${randomBytes(12).toString('hex')}`,
    account_id: key.accountId,
    name: key.name,
    ...text,
    kind: key.kind ?? 'standard',
    created_at: Date.now(),
    ...settingColumns(key),
  };
}

/** Builds a key from its row. */
export function apiKeyOf(row: Selectable<ApiKeysTable>): ApiKey {
  const { budget, budget_period: period } = row;
  return {
    id: row.id,
    accountId: row.account_id,
    name: row.name,
    hash: row.hash,
    prefix: row.prefix,
    kind: row.kind,
    revision: row.revision,
    createdAt: row.created_at,
    revokedAt: row.revoked_at ?? undefined,
    rotatedTo: row.rotated_to ?? undefined,
    budgetId: row.budget_id ?? undefined,
    lastUsedAt: row.last_used_at ?? undefined,
    expiresAt: row.expires_at ?? undefined,
    capabilities: parsed<Capability[]>(row.capabilities),
    models: parsed<string[]>(row.models),
    rpm: row.rpm ?? undefined,
    tpm: row.tpm ?? undefined,
    modelLimits: parsed<Record<string, RateLimits>>(row.model_limits),
    budget: budget === null || period === null ? undefined : { amount: budget, period },
    concurrency: row.concurrency ?? undefined,
    onDisconnect: row.on_disconnect ?? undefined,
    unsupportedParameters: row.unsupported_parameters ?? undefined,
    cacheBreakpoints: row.cache_breakpoints ?? undefined,
    priority: row.priority ?? undefined,
    maxPriority: row.max_priority ?? undefined,
    singleFlight: row.single_flight === null ? undefined : row.single_flight === 1,
    cacheSeconds: row.cache_seconds ?? undefined,
    vendorIds: parsed<string[]>(row.vendor_ids),
  };
}

function json(value: unknown): string | null {
  return value === undefined ? null : JSON.stringify(value);
}

function parsed<Value>(text: string | null): Value | undefined {
  return text === null ? undefined : (JSON.parse(text) as Value);
}
