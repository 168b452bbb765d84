import { type Model, models, modelsWithFreeSandbox } from '../catalogue/models.ts';
import { applyConfiguration } from './file/apply-configuration.ts';
import { addressSettings, sandboxSetting } from './file/apply-vendors.ts';
import type { Configuration } from './file/read-configuration.ts';
import { type RoutingSettings, routingDefaults } from './routing-settings.ts';
import { readVendorSettings, type SandboxSetting, type VendorSettings } from './vendor-settings.ts';

/** Which models there are, and who serves them. */
export interface ModelSettings {
  /** Enabled vendors by name, with their settings. */
  readonly vendors: Readonly<Record<string, VendorSettings>>;
  /** Every model, whether or not its vendors are enabled. */
  readonly models: readonly Model[];
  readonly routing: RoutingSettings;
  /** Whether the sandbox vendor is enabled: `SLUICE_SANDBOX` resolved against the vendor keys. */
  readonly sandbox: boolean;
}

/**
 * Vendors, models and routing of the environment, as changed by the configuration file.
 * @throws ConfigError naming the setting, or the line of the file, and its requirement.
 */
export function readModelSettings(
  configuration: Configuration | undefined,
  given: Readonly<Record<string, string | undefined>>,
  setting: SandboxSetting,
): ModelSettings {
  const table = setting === 'priced' ? models : modelsWithFreeSandbox;
  if (configuration === undefined) {
    return { ...readVendorSettings(given, setting), models: table, routing: routingDefaults };
  }
  const { file } = configuration;
  const environment = { ...given, ...addressSettings(file) };
  const { vendors, sandbox } = readVendorSettings(environment, sandboxSetting(setting, file));
  return { ...applyConfiguration(configuration, { vendors, sandbox, environment, table }), sandbox };
}
