import type { Config } from '../config/config.ts';

/**
 * The wait in ms to which overload is kept. An account that is persistently refused gets in again once its line is as short as
 * this, and one whose callers give up is served newest-first while its oldest job waits longer.
 */
export function targetWaitMs({ queueWaitMs }: Pick<Config, 'queueWaitMs'>): number {
  return queueWaitMs / 10;
}
