import { readFileSync } from 'node:fs';
import { settingsToTurnOn } from '../shared/config/vendor-settings.ts';
import { vendorRows } from '../shared/vendors/vendors.ts';

const configuration = new URL('configuration.md', import.meta.url);

/** The text of `.env.example`: every setting of docs/configuration.md, commented out, with its default and meaning. */
export function environmentExample(): string {
  const rows = vendorRows.filter(({ name }) => name !== 'sandbox');
  const vendors = rows.flatMap(settingsToTurnOn).map((name) => `# ${name}=`);
  return [
    '# Copy this file to .env, which `npm start` and compose read, and take the # off what you set.',
    '# Variables of the shell win over it. Made by `npm run documents` from docs/configuration.md.',
    '',
    '# compose only: the password of its Redis, which must be set, and the name that leads to the server.',
    '# REDIS_PASSWORD=',
    '# SLUICE_DOMAIN=',
    '',
    '# Vendors: each is turned on by its key, or by its address where it needs none. See docs/vendors.md.',
    ...vendors,
    ...tableRows().flatMap(({ names, byDefault, meaning }) => [
      '',
      `# ${meaning}${byDefault === '' ? '' : ` (default: ${byDefault})`}`,
      ...names.map((name) => `# ${name}=`),
    ]),
    '',
  ].join('\n');
}

interface SettingRow {
  readonly names: readonly string[];
  readonly byDefault: string;
  readonly meaning: string;
}

/** The table of settings, without its row of vendors' keys. */
function tableRows(): SettingRow[] {
  const lines = readFileSync(configuration, 'utf8').split('\n');
  return lines.flatMap((line) => {
    const [, settings, byDefault, meaning] = line.split('|').map((cell) => plain(cell.trim()));
    const names = settings?.split(', ') ?? [];
    if (!line.startsWith('| `') || names.some((name) => !/^[A-Z][A-Z_]+$/.test(name))) return [];
    return [{ names, byDefault: byDefault ?? '', meaning: meaning ?? '' }];
  });
}

/** Strips Markdown formatting. */
function plain(text: string): string {
  return text.replace(/\[([^\]]*)\]\([^)]*\)/g, '$1').replaceAll('`', '');
}
