import type { ApiKey, BudgetPeriod, KeyValues, Priority } from '../../api/keys.ts';
import { type AmountRange, amountOf, amountText } from '../../format/amount.ts';
import { localMinute } from '../../format/time.ts';

/** Values of the form's fields: numbers as typed, '' for none. */
export interface KeyFormValues {
  readonly name: string;
  /** Chosen at creation, by operators only. */
  readonly kind: ApiKey['kind'];
  /** A span in days from now, `never`, or `date` for `expiresOn`. */
  readonly expiry: string;
  /** `2026-11-22T14:00`, in the user's time zone. */
  readonly expiresOn: string;
  readonly capabilities: readonly string[];
  readonly models: readonly string[];
  readonly rpm: string;
  readonly tpm: string;
  readonly concurrency: string;
  readonly budget: string;
  readonly budgetPeriod: BudgetPeriod;
  readonly modelLimits: readonly ModelLimit[];
  readonly onDisconnect: string;
  readonly unsupportedParameters: string;
  readonly cacheBreakpoints: string;
  readonly priority: string;
  readonly maxPriority: string;
  readonly singleFlight: string;
  readonly cacheSeconds: string;
}

/** What a group of the form's fields gets. */
export interface KeyFieldsProps {
  readonly values: KeyFormValues;
  readonly onChange: (change: Partial<KeyFormValues>) => void;
}

/** One line of the limits per model. */
export interface ModelLimit {
  /** Identifies the line while it is edited. */
  readonly line: number;
  readonly model: string;
  readonly rpm: string;
  readonly tpm: string;
}

/** A limit; the gateway has the highest ones. */
export const limitRange: AmountRange = { decimals: 0, min: 1 };
/** Dollars, as exactly as the amount is kept. */
export const budgetRange: AmountRange = { decimals: 9, min: 0, max: 1_000_000 };
export const cacheRange: AmountRange = { decimals: 0, min: 1, max: 604_800 };

export const emptyKeyForm: KeyFormValues = {
  name: '',
  kind: 'standard',
  expiry: 'never',
  expiresOn: '',
  capabilities: [],
  models: [],
  rpm: '',
  tpm: '',
  concurrency: '',
  budget: '',
  budgetPeriod: 'month',
  modelLimits: [],
  onDisconnect: '',
  unsupportedParameters: '',
  cacheBreakpoints: '',
  priority: '',
  maxPriority: '',
  singleFlight: '',
  cacheSeconds: '',
};

const limitText = (limit: number | null | undefined): string => (typeof limit === 'number' ? amountText(limit, 0) : '');

const dayMs = 86_400_000;

/** The form of an existing key. */
export function keyFormOf(key: ApiKey): KeyFormValues {
  return {
    name: key.name,
    kind: key.kind,
    expiry: key.expires_at === null ? 'never' : 'date',
    expiresOn: key.expires_at === null ? '' : localMinute(key.expires_at),
    capabilities: key.capabilities ?? [],
    models: key.models ?? [],
    rpm: limitText(key.rpm),
    tpm: limitText(key.tpm),
    concurrency: limitText(key.concurrency),
    budget: key.budget === null ? '' : `$${amountText(key.budget.amount, budgetRange.decimals)}`,
    budgetPeriod: key.budget?.period ?? 'month',
    modelLimits: Object.entries(key.model_limits ?? {}).map(([model, limit], line) => ({
      line,
      model,
      rpm: limitText(limit.rpm),
      tpm: limitText(limit.tpm),
    })),
    onDisconnect: key.on_disconnect ?? '',
    unsupportedParameters: key.unsupported_parameters ?? '',
    cacheBreakpoints: key.cache_breakpoints === 'automatic' ? 'automatic' : '',
    priority: key.priority ?? '',
    maxPriority: key.max_priority ?? '',
    singleFlight: key.single_flight === true ? 'on' : '',
    cacheSeconds: limitText(key.cache_seconds),
  };
}

function expiryOf(form: KeyFormValues, now: number): number | null {
  if (form.expiry === 'never') return null;
  if (form.expiry !== 'date') return now + Number(form.expiry) * dayMs;
  const at = new Date(form.expiresOn).getTime();
  return Number.isNaN(at) ? null : at;
}

function modelLimitsOf(lines: readonly ModelLimit[]): KeyValues['model_limits'] {
  const limits = lines
    .map(({ model, rpm, tpm }) => ({ model, rpm: amountOf(rpm, limitRange), tpm: amountOf(tpm, limitRange) }))
    .filter(({ model, rpm, tpm }) => model.trim() !== '' && (rpm !== null || tpm !== null))
    .map(({ model, rpm, tpm }) => [model.trim(), { ...(rpm !== null && { rpm }), ...(tpm !== null && { tpm }) }]);
  return limits.length === 0 ? null : Object.fromEntries(limits);
}

/** The values to send for a form: null removes a limit. */
export function keyValuesOf(form: KeyFormValues, now = Date.now()): KeyValues {
  const budget = amountOf(form.budget, budgetRange);
  return {
    name: form.name.trim(),
    ...(form.kind === 'operator' && { kind: form.kind }),
    expires_at: expiryOf(form, now),
    capabilities: form.capabilities.length === 0 ? null : form.capabilities,
    models: form.models.length === 0 ? null : form.models,
    rpm: amountOf(form.rpm, limitRange),
    tpm: amountOf(form.tpm, limitRange),
    concurrency: amountOf(form.concurrency, limitRange),
    model_limits: modelLimitsOf(form.modelLimits),
    budget: budget === null ? null : { amount: budget, period: form.budgetPeriod },
    on_disconnect: form.onDisconnect === '' ? null : (form.onDisconnect as 'cancel' | 'continue'),
    unsupported_parameters:
      form.unsupportedParameters === '' ? null : (form.unsupportedParameters as 'refuse' | 'drop'),
    cache_breakpoints: form.cacheBreakpoints === '' ? null : (form.cacheBreakpoints as 'caller' | 'automatic'),
    priority: form.priority === '' ? null : (form.priority as Priority),
    max_priority: form.maxPriority === '' ? null : (form.maxPriority as Priority),
    single_flight: form.singleFlight === '' ? null : true,
    cache_seconds: amountOf(form.cacheSeconds, cacheRange),
  };
}

/** Only the changed values: untouched ones are neither sent nor rejected. */
export function changesOf(before: KeyFormValues, after: KeyFormValues): Partial<KeyValues> {
  const now = Date.now();
  const old = keyValuesOf(before, now);
  return Object.fromEntries(
    Object.entries(keyValuesOf(after, now)).filter(
      ([name, value]) => JSON.stringify(value) !== JSON.stringify(old[name as keyof KeyValues]),
    ),
  );
}
