import { readFileSync } from 'node:fs';
import { dashboardFiles } from '../deploy/grafana/dashboards.ts';
import { rulesFiles } from '../deploy/prometheus/rules-file.ts';
import { settingName } from '../shared/config/vendor-settings.ts';
import { vendorRows } from '../shared/vendors/vendors.ts';
import { chartValuesSchema } from './chart-values.ts';
import { environmentExample } from './environment-example.ts';
import { vendorTable } from './vendors-page.ts';

/** A file that is generated from the source, wholly or in part. */
export interface GeneratedDocument {
  /** Relative to the project's root. */
  readonly path: string;
  /** The file's expected text. */
  readonly text: () => string;
}

/** All files written by `npm run documents`. A test compares each with this. */
export const generatedDocuments: readonly GeneratedDocument[] = [
  { path: '.env.example', text: environmentExample },
  { path: 'deploy/helm/sluice/values.schema.json', text: chartValuesSchema },
  ...Object.entries(rulesFiles).map(([name, text]) => ({ path: `deploy/prometheus/${name}`, text })),
  ...Object.entries(dashboardFiles).map(([name, text]) => ({ path: `deploy/grafana/${name}`, text })),
  {
    path: 'docs/vendors.md',
    text: () => withPart('docs/vendors.md', /^\| vendor \|[\s\S]*?(?=\n\n)/m, vendorTable()),
  },
  {
    path: 'docker-compose.yml',
    text: () =>
      withPart(
        'docker-compose.yml',
        /(?<=Made by `npm run documents`\.\n)(?: {2}\w+_(?:API_KEY|BASE_URL):.*\n)+/,
        vendorSettings(),
      ),
  },
];

/**
 * Regenerates a part of a file.
 * @throws Error if the file has no such part.
 */
function withPart(path: string, part: RegExp, text: string): string {
  const whole = readFileSync(new URL(`../${path}`, import.meta.url), 'utf8');
  if (!part.test(whole)) throw new Error(`${path} has no part that looks like ${part}`);
  return whole.replace(part, () => text);
}

/** The settings of every vendor, as compose passes them through. */
function vendorSettings(): string {
  const rows = vendorRows.filter(({ name }) => name !== 'sandbox');
  const names = rows.flatMap((row) => [`${settingName(row)}_API_KEY`, `${settingName(row)}_BASE_URL`]);
  return names.map((name) => `  ${name}: \${${name}:-}\n`).join('');
}
