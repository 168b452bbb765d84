import assert from 'node:assert/strict';
import { ConfigError, readConfig } from '../../shared/config/config.ts';

/** What reading these settings says of them; undefined: they can be used. */
export function settingsComplaint(environment: Record<string, string>): string | undefined {
  try {
    readConfig(environment);
    return undefined;
  } catch (error) {
    assert.ok(error instanceof ConfigError, String(error));
    return error.message;
  }
}
