/** The thread that reads the settings again. Started by read-config-aside.ts, and ends with its answer. */
import { parentPort, workerData } from 'node:worker_threads';
import { ConfigError, readConfig } from './config.ts';
import type { SettingsRead, ThreadSettings } from './read-config-aside.ts';

const { defaults, isRead } = workerData as ThreadSettings;

function read(): SettingsRead {
  try {
    return { config: readConfig(undefined, defaults, true) };
  } catch (error) {
    if (error instanceof ConfigError) return { refusal: error.message };
    throw error;
  } finally {
    Atomics.store(isRead, 0, 1);
    Atomics.notify(isRead, 0);
  }
}

parentPort?.postMessage(read());
