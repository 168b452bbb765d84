import type { ConfigurationFile } from './configuration-file.ts';

/** The limits of the file as settings of the environment: `{ SLUICE_QUEUE_LIMIT: 100 }`. */
export function limitSettings({ limits }: ConfigurationFile): Readonly<Record<string, number>> {
  return Object.fromEntries(
    Object.entries(limits).flatMap(([name, value]) =>
      value === undefined ? [] : [[`SLUICE_${name.toUpperCase()}`, value]],
    ),
  );
}
