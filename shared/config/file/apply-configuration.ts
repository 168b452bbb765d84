import type { Model } from '../../catalogue/model.ts';
import { type RoutingSettings, routingDefaults } from '../routing-settings.ts';
import type { VendorSettings } from '../vendor-settings.ts';
import { applyModels } from './apply-models.ts';
import { applyVendors, type VendorSources } from './apply-vendors.ts';
import type { ConfigurationFile } from './configuration-file.ts';
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
  const mistakes = [...wrongVendors, ...wrongModels];
  if (mistakes.length > 0) throw source.error(mistakes);
  return { vendors, models, routing: routingOf(file.routing) };
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
