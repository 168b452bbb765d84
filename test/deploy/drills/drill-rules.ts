import { readFile, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parse, stringify } from 'yaml';
import { rulesFiles } from '../../../deploy/prometheus/rules-file.ts';

interface Rule {
  readonly alert?: string;
  readonly for?: string;
}

/** The files of rules, as they are deployed. */
export const deployedRules = Object.keys(rulesFiles).map((name) =>
  fileURLToPath(new URL(`../../../deploy/prometheus/${name}`, import.meta.url)),
);

/** Longest `for` in a drill. */
const maxFor = '1m';

/** Rules for drills. */
export interface DrillRules {
  readonly files: readonly string[];
  readonly alerts: readonly string[];
  /** Alerts that fire sooner than deployed, and the `for` that they have there. */
  readonly shortened: ReadonlyMap<string, string>;
}

/** Writes the deployed rules into a folder, unchanged but for a `for` of several minutes, which becomes one minute. */
export async function writeDrillRules(folder: string): Promise<DrillRules> {
  const shortened = new Map<string, string>();
  const alerts: string[] = [];
  const files = await Promise.all(
    deployedRules.map(async (path) => {
      const { groups } = parse(await readFile(path, 'utf8')) as { groups: { rules: Rule[] }[] };
      for (const rule of groups.flatMap(({ rules }) => rules)) {
        if (rule.alert === undefined) continue;
        alerts.push(rule.alert);
        if (rule.for === undefined || /^(1m|\d+s)$/.test(rule.for)) continue;
        shortened.set(rule.alert, rule.for);
        Object.assign(rule, { for: maxFor });
      }
      const file = join(folder, basename(path));
      await writeFile(file, stringify({ groups }));
      return file;
    }),
  );
  return { files, alerts, shortened };
}
