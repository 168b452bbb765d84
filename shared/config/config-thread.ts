/** The thread that reads the settings again. Started by read-config-aside.ts, and ends with its answer. */
import { parentPort, workerData } from 'node:worker_threads';
import { ConfigError, readConfig } from './config.ts';
import type { SettingsRead } from './read-config-aside.ts';

function read(): SettingsRead {
  try {
    return { config: readConfig(undefined, workerData as Readonly<Record<string, string>>, true) };
  } catch (error) {
    if (error instanceof ConfigError) return { refusal: error.message };
    throw error;
  }
}

parentPort?.postMessage(read());
