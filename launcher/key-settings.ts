import { budgetPeriods, maxBudget } from '../shared/accounts/account-money.ts';
import {
  type ApiKey,
  type KeySettings,
  keyStatus,
  maxCacheSeconds,
  type Priority,
} from '../shared/accounts/api-key.ts';
import { defaultAccountId } from '../shared/accounts/api-keys.ts';
import { isCapability } from '../shared/capabilities/capability.ts';
import { formatDollars, parseDollars } from '../shared/money/cost.ts';

const dayMs = 86_400_000;

/** Options of `npm run keys -- create`, in `parseArgs` format. */
export const keyOptions = {
  concurrency: { type: 'string' },
  'on-disconnect': { type: 'string' },
  'unsupported-parameters': { type: 'string' },
  'cache-breakpoints': { type: 'string' },
  'single-flight': { type: 'string' },
  'cache-seconds': { type: 'string' },
  'expires-in-days': { type: 'string' },
  capabilities: { type: 'string' },
  models: { type: 'string' },
  rpm: { type: 'string' },
  tpm: { type: 'string' },
  budget: { type: 'string' },
  'budget-period': { type: 'string' },
  priority: { type: 'string' },
  'max-priority': { type: 'string' },
  'vendor-ids': { type: 'string' },
} as const;

/** Help text of the options. */
export const keyOptionsHelp = `  --concurrency    unfinished jobs that the key may have at a time
  --on-disconnect  what becomes of a job when its caller leaves
  --unsupported-parameters
                   what becomes of parameters that change an answer and that the model's vendor does not know
  --cache-breakpoints
                   who sets the breakpoints of Claude's prompt cache: caller, or automatic where the caller sets none
  --single-flight  whether identical requests at once share one call of a vendor: on or off
  --cache-seconds  how long answers are cached for identical requests, if these do not say so themselves
  --expires-in-days
                   after how many days it stops to be valid
  --capabilities   what it may be used for: chat,embedding,image,transcription,speech,video
  --models         the models it may use; one that ends in a star stands for all that begin so: gpt-4o,openai/*
  --rpm, --tpm     requests, and tokens, that it may take in a minute
  --budget         dollars that it may spend in a --budget-period: day, week, month (which it is where it is left out)
                   or never, for as long as it lives
  --priority       low, normal or high: of its requests that choose none
  --max-priority   the highest that they may choose; high only if the account may, too
  --vendor-ids     what of your own accounts at vendors it may name: file-abc,vs_*`;

type Given = { readonly [Name in keyof typeof keyOptions]?: string | undefined };

/**
 * Parses the settings of a command line.
 * @throws Error that names the option at fault and the values it accepts.
 */
export function readKeySettings(given: Given, now: number): Partial<KeySettings> {
  const {
    'on-disconnect': onDisconnect,
    'unsupported-parameters': unsupported,
    'cache-breakpoints': breakpoints,
  } = given;
  if (onDisconnect !== undefined && onDisconnect !== 'cancel' && onDisconnect !== 'continue') {
    throw new Error('--on-disconnect takes cancel or continue');
  }
  if (unsupported !== undefined && unsupported !== 'refuse' && unsupported !== 'drop') {
    throw new Error('--unsupported-parameters takes refuse or drop');
  }
  if (breakpoints !== undefined && breakpoints !== 'caller' && breakpoints !== 'automatic') {
    throw new Error('--cache-breakpoints takes caller or automatic');
  }
  const days = wholeNumber(given, 'expires-in-days', 36_500);
  return {
    concurrency: wholeNumber(given, 'concurrency', 9_999_999),
    onDisconnect,
    unsupportedParameters: unsupported,
    cacheBreakpoints: breakpoints,
    singleFlight: readSwitch(given, 'single-flight'),
    cacheSeconds: wholeNumber(given, 'cache-seconds', maxCacheSeconds),
    expiresAt: days === undefined ? undefined : now + days * dayMs,
    capabilities: readCapabilities(given.capabilities),
    models: readModels(given.models),
    rpm: wholeNumber(given, 'rpm', 1_000_000_000),
    tpm: wholeNumber(given, 'tpm', 1_000_000_000_000),
    budget: readBudget(given),
    priority: readPriority(given, 'priority'),
    maxPriority: readPriority(given, 'max-priority'),
    vendorIds: readVendorIds(given['vendor-ids']),
  };
}

function readPriority(given: Given, name: 'priority' | 'max-priority'): Priority | undefined {
  const priority = given[name];
  if (priority === undefined || priority === 'low' || priority === 'normal' || priority === 'high') return priority;
  throw new Error(`--${name} takes low, normal or high`);
}

function wholeNumber(given: Given, name: keyof Given, max: number): number | undefined {
  const text = given[name];
  if (text === undefined) return undefined;
  if (/^[1-9]\d{0,14}$/.test(text) && Number(text) <= max) return Number(text);
  throw new Error(`--${name} takes a whole number from 1 to ${max}`);
}

function readSwitch(given: Given, name: keyof Given): boolean | undefined {
  const text = given[name];
  if (text === undefined) return undefined;
  if (text !== 'on' && text !== 'off') throw new Error(`--${name} takes on or off`);
  return text === 'on';
}

function splitList(list: string | undefined): string[] | undefined {
  return list?.split(',').map((item) => item.trim());
}

function readCapabilities(list: string | undefined): KeySettings['capabilities'] {
  return splitList(list)?.map((name) => {
    if (!isCapability(name)) throw new Error('--capabilities takes names of capabilities, with commas between them');
    return name;
  });
}

function readModels(list: string | undefined): KeySettings['models'] {
  const models = splitList(list);
  if (models?.every((model) => /^[^*]{1,256}$|^[^*]{0,255}\*$/.test(model)) ?? true) return models;
  throw new Error('--models takes ids of models, with commas between them, each of which may end in a star');
}

function readVendorIds(list: string | undefined): KeySettings['vendorIds'] {
  const ids = splitList(list);
  if (ids?.every((id) => /^[^*]{1,512}$|^[^*]{0,511}\*$/.test(id)) ?? true) return ids;
  throw new Error('--vendor-ids takes ids, with commas between them, each of which may end in a star');
}

function readBudget({ budget, 'budget-period': givenPeriod }: Given): KeySettings['budget'] {
  const known = budgetPeriods.find((name) => name === (givenPeriod ?? 'month'));
  if (known === undefined) throw new Error(`--budget-period takes ${budgetPeriods.join(', ')}`);
  if (budget === undefined) {
    if (givenPeriod !== undefined) throw new Error('--budget-period needs a --budget');
    return undefined;
  }
  const amount = parseDollars(budget);
  if (amount === undefined || amount < 0 || amount > maxBudget) {
    throw new Error(`--budget takes dollars, such as 12.50, up to ${formatDollars(maxBudget)}`);
  }
  return { amount, period: known };
}

const columnNames = ['ID', 'KEY', 'NAME', 'STATUS', 'CREATED', 'LAST USED', 'EXPIRES', 'SETTINGS'];

/** Keys as a table for a terminal. */
export function keyTable(keys: readonly ApiKey[], now: number): string {
  const rows = [columnNames, ...keys.map((key) => rowOf(key, now))];
  const widths = columnNames.map((_, column) => Math.max(...rows.map((row) => (row[column] ?? '').length)));
  const lines = rows.map((row) => row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  '));
  return lines.map((line) => line.trimEnd()).join('\n');
}

function rowOf(key: ApiKey, now: number): string[] {
  return [
    key.id,
    `${key.prefix}…`,
    // A name may contain anything; in a terminal it must stay on its line.
    key.name.replace(/\p{C}/gu, ' '),
    keyStatus(key, now),
    timeText(key.createdAt),
    timeText(key.lastUsedAt),
    timeText(key.expiresAt),
    settingsText(key),
  ];
}

function timeText(time: number | undefined): string {
  return time === undefined ? '-' : `${new Date(time).toISOString().slice(0, 19).replace('T', ' ')}Z`;
}

function settingsText(key: ApiKey): string {
  const { budget } = key;
  const settings: [name: string, value: string | number | undefined][] = [
    ['account', key.accountId === defaultAccountId ? undefined : key.accountId],
    ['kind', key.kind === 'standard' ? undefined : key.kind],
    ['capabilities', key.capabilities?.join(' ')],
    ['models', key.models?.join(' ').replace(/\p{C}/gu, ' ')],
    ['rpm', key.rpm],
    ['tpm', key.tpm],
    ['budget', budget && `$${formatDollars(budget.amount)} ${budget.period}`],
    ['concurrency', key.concurrency],
    ['on-disconnect', key.onDisconnect],
    ['unsupported-parameters', key.unsupportedParameters],
    ['cache-breakpoints', key.cacheBreakpoints],
    ['priority', key.priority],
    ['max-priority', key.maxPriority],
    ['single-flight', key.singleFlight === undefined ? undefined : key.singleFlight ? 'on' : 'off'],
    ['cache-seconds', key.cacheSeconds],
    ['model-limits', key.modelLimits && Object.keys(key.modelLimits).length],
    ['vendor-ids', key.vendorIds?.join(' ').replace(/\p{C}/gu, ' ')],
    ['rotated-to', key.rotatedTo],
  ];
  const texts = settings.flatMap(([name, value]) => (value === undefined ? [] : `${name} ${value}`));
  return texts.join(', ') || '-';
}
