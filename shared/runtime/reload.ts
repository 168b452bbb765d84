import { type Config, ConfigError } from '../config/config.ts';
import { readConfigAside } from '../config/read-config-aside.ts';
import type { Logger } from './log.ts';

/** Limits of the configuration file, by their names in the settings: a process reads them only at its start. */
const limits = {
  queueLimit: 'queue_limit',
  queueWaitMs: 'queue_wait_seconds',
  keyConcurrency: 'key_concurrency',
  deadlineMs: 'deadline_seconds',
  backgroundDeadlineMs: 'background_deadline_seconds',
  vendorSilenceMs: 'vendor_silence_seconds',
} as const satisfies Partial<Record<keyof Config, string>>;

/** Names of the limits that differ. */
function changedLimits(before: Config, now: Config): string[] {
  const names = Object.keys(limits) as (keyof typeof limits)[];
  return names.filter((name) => before[name] !== now[name]).map((name) => limits[name]);
}

/**
 * Has each reload begin once the one before is over: what was read last is applied last, and one thread reads at a time.
 * @param reload must not reject
 * @returns a function that asks for one; those that are asked for while one is waiting are one
 */
export function oneAfterAnother(reload: () => Promise<void>): () => void {
  let last = Promise.resolve();
  let isWaiting = false;
  return () => {
    if (isWaiting) return;
    isWaiting = true;
    last = last.then(() => {
      isWaiting = false;
      return reload();
    });
  };
}

/** Whether a SIGHUP has arrived before `reloadOnHangup` was called. */
let isReloadDue = false;
const keepHangup = (): void => {
  isReloadDue = true;
};

/**
 * Keeps a SIGHUP that arrives during the start until `reloadOnHangup` is called. Call it first: an unhandled one ends a process,
 * and a deployment sends it to all of them, also to one that has only begun to start.
 */
export function keepHangupForReload(): void {
  process.on('SIGHUP', keepHangup);
}

/**
 * Reads the settings again at every SIGHUP, also at one that `keepHangupForReload` has kept, and passes them to `apply`. Invalid
 * settings are logged, and the old ones stay as a whole. Signals that arrive while one is waiting to be read are one.
 * @returns a function that stops this; SIGHUP is then ignored
 */
export function reloadOnHangup(options: {
  /** The settings of the process's start. */
  config: Config;
  log: Logger;
  apply: (config: Config) => void;
}): () => void {
  const { config: started, log, apply } = options;
  let isStopped = false;
  const reload = async (): Promise<void> => {
    if (isStopped) return;
    try {
      const config = await readConfigAside();
      if (isStopped) return;
      apply(config);
      const [models, vendors] = [config.models.length, Object.keys(config.vendors).length];
      log.info({ models, vendors }, 'configuration reloaded');
      const waiting = changedLimits(started, config);
      if (waiting.length > 0)
        log.warn({ limits: waiting }, 'changed limits take effect at the next start of the process');
    } catch (error) {
      if (error instanceof ConfigError) log.error(`The settings stay as they were. ${error.message}`);
      else log.error({ err: error }, 'reloading the configuration failed');
    }
  };
  const reloadNext = oneAfterAnother(reload);
  process.on('SIGHUP', reloadNext);
  process.off('SIGHUP', keepHangup);
  if (isReloadDue) reloadNext();
  return () => {
    isStopped = true;
  };
}
