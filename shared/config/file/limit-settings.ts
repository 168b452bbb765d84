import type { ConfigurationFile } from './configuration-file.ts';

/** The file's limits as settings of the environment: `{ SLUICE_QUEUE_LIMIT: 100 }`. */
export function limitSettings({ limits }: ConfigurationFile): Readonly<Record<string, number>> {
  return Object.fromEntries(
    Object.entries(limits).flatMap(([name, value]) =>
      value === undefined ? [] : [[`SLUICE_${name.toUpperCase()}`, value]],
    ),
  );
}
