import { type Config, ConfigError, readConfig } from '../config/config.ts';
import type { Logger } from './log.ts';

/**
 * Reads the settings again at every SIGHUP and passes them to `apply`. Invalid settings are logged, and the old ones stay as a
 * whole. Call it before a parent is notified that this process is ready: an unhandled SIGHUP ends a process.
 * @returns a function that stops this; SIGHUP is then ignored
 */
export function reloadOnHangup(options: { log: Logger; apply: (config: Config) => void }): () => void {
  const { log, apply } = options;
  let isStopped = false;
  process.on('SIGHUP', () => {
    if (isStopped) return;
    try {
      const config = readConfig();
      apply(config);
      const [models, vendors] = [config.models.length, Object.keys(config.vendors).length];
      log.info({ models, vendors }, 'configuration reloaded');
    } catch (error) {
      if (error instanceof ConfigError) log.error(`The settings stay as they were. ${error.message}`);
      else log.error({ err: error }, 'reloading the configuration failed');
    }
  });
  return () => {
    isStopped = true;
  };
}
