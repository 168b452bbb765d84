import type { Model } from '../../catalogue/model.ts';
import { type RoutingSettings, routingDefaults } from '../routing-settings.ts';
import type { VendorSettings } from '../vendor-settings.ts';
import { applyModels } from './apply-models.ts';
import { applyVendors, type VendorSources } from './apply-vendors.ts';
import type { ConfigurationFile } from './configuration-file.ts';
import type { Mistake } from './mistake.ts';
import type { Configuration } from './read-configuration.ts';

/** The result of applying the configuration file. */
export interface Applied {
  readonly vendors: Readonly<Record<string, VendorSettings>>;
  readonly models: readonly Model[];
  readonly routing: RoutingSettings;
}

/**
 * Combines the catalogue, the environment and the configuration file.
 * @throws ConfigError with every mistake: unknown names, incomplete models.
 */
export function applyConfiguration(
  { file, source }: Configuration,
  { table, ...sources }: VendorSources & { readonly table: readonly Model[] },
): Applied {
  const { vendors, mistakes: wrongVendors } = applyVendors(sources, file.vendors);
  const { models, mistakes: wrongModels } = applyModels(table, file);
  const wrongLimits = uselessLimits(file.vendors, vendors, [...table, ...models]);
  const mistakes = [...wrongVendors, ...wrongModels, ...wrongLimits];
  if (mistakes.length > 0) throw source.error(mistakes);
  return { vendors, models, routing: routingOf(file.routing) };
}

/** Limits of models that no route names, which would limit nothing. A vendor that is open has models that are listed nowhere. */
function uselessLimits(
  entries: ConfigurationFile['vendors'],
  vendors: Applied['vendors'],
  models: readonly Model[],
): Mistake[] {
  const called = new Set(models.flatMap(({ routes }) => routes.map(({ vendor, model }) => `${vendor}/${model}`)));
  const message =
    "expected the vendor's name of a model, as a route has it; those of a vendor with open: true may be any";
  return Object.entries(entries).flatMap(([name, { modelLimits = {} }]) => {
    if (vendors[name]?.isOpen ?? true) return [];
    const useless = Object.keys(modelLimits).filter((model) => !called.has(`${name}/${model}`));
    return useless.map((model) => ({ path: ['vendors', name, 'model_limits', model], message, isKey: true }));
  });
}

function routingOf({
  attempts,
  retryBudgetPercent,
  longestRetryAfterSeconds,
  breaker = {},
}: ConfigurationFile['routing']): RoutingSettings {
  const { thresholdPercent, calls, pauseSeconds } = breaker;
  return {
    ...routingDefaults,
    ...(attempts !== undefined && { attempts }),
    ...(retryBudgetPercent !== undefined && { retryBudget: retryBudgetPercent / 100 }),
    ...(longestRetryAfterSeconds !== undefined && { maxRetryAfterMs: longestRetryAfterSeconds * 1000 }),
    ...(thresholdPercent !== undefined && { breakerThreshold: thresholdPercent / 100 }),
    ...(calls !== undefined && { breakerCalls: calls }),
    ...(pauseSeconds !== undefined && { breakerPauseMs: Math.round(pauseSeconds * 1000) }),
  };
}
