import { availableParallelism } from 'node:os';
import { z } from 'zod';

const maxProcesses = 64;

const processes = z.union([z.literal('auto'), z.coerce.number().int().min(1).max(maxProcesses)], {
  error: `must be auto, or a whole number from 1 to ${maxProcesses}`,
});

/** How many processes `npm start` runs of each role. */
export const processSettings = {
  SLUICE_API_PROCESSES: processes.default('auto'),
  SLUICE_WORKER_PROCESSES: processes.default('auto'),
};

export interface ProcessSettings {
  /** How many api processes `npm start` runs; they share the port. */
  readonly apiProcesses: number;
  readonly workerProcesses: number;
}

/**
 * `auto` leaves a core to Redis, which takes about 90 µs for a held request where api and worker take 160 and 100 µs: more than
 * three api and two worker processes would only wait for it, unless requests are large.
 */
export function readProcessSettings(
  env: z.infer<z.ZodObject<typeof processSettings>>,
  cores = availableParallelism(),
): ProcessSettings {
  const auto = {
    api: Math.min(3, Math.max(1, Math.floor(cores / 2))),
    worker: Math.min(2, Math.max(1, Math.floor(cores / 4))),
  };
  return {
    apiProcesses: env.SLUICE_API_PROCESSES === 'auto' ? auto.api : env.SLUICE_API_PROCESSES,
    workerProcesses: env.SLUICE_WORKER_PROCESSES === 'auto' ? auto.worker : env.SLUICE_WORKER_PROCESSES,
  };
}
