import { type Config, ConfigError, readConfig } from '../config/config.ts';
import type { Logger } from './log.ts';

/**
 * Reads the settings again at every SIGHUP and has `apply` take them. Where they cannot be used the old ones stay, whole,
 * and what is wrong is logged. Call it before a parent is told that this process is ready: a SIGHUP that nobody waits for
 * ends a process.
 * @returns ends that; SIGHUP is then passed over
 */
export function reloadOnHangup(options: { log: Logger; apply: (config: Config) => void }): () => void {
  const { log, apply } = options;
  let isOver = false;
  process.on('SIGHUP', () => {
    if (isOver) return;
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
    isOver = true;
  };
}
