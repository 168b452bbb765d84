/** `npm run migrate`: runs the database's migrations apart from a start, or shows which ones it lacks. */
import { parseArgs } from 'node:util';
import { startFailure } from '../shared/config/start-failure.ts';
import { migrateDatabase, readSchemaStatus, type SchemaStatus } from '../shared/database/schema-status.ts';
import { keepFilesPrivate } from '../shared/runtime/private-files.ts';
import { endWithOutput, lostOption, readCommandConfig } from './command-settings.ts';

const usage = `usage:
  npm run migrate                      runs the migrations that the database lacks; gateways may run meanwhile
  npm run migrate -- --status [--json] shows them, and changes nothing; exits with 3 if there are any`;

/** Exit code of `--status` if migrations are missing. */
const missingCode = 3;

/** An invalid command line: exit code 2. */
class UsageError extends Error {
  override readonly name = 'UsageError';
}

function describe({ version, minVersion, missing, newer }: SchemaStatus): string {
  return [
    `This gateway's schema has version ${version}; the database can be used from version ${minVersion} on.`,
    missing.length === 0 ? 'No migration is missing.' : `Missing: ${missing.join(', ')}.`,
    ...(newer.length === 0 ? [] : [`Run by a newer version: ${newer.join(', ')}.`]),
  ].join('\n');
}

async function run(isStatus: boolean, isJson: boolean): Promise<number> {
  const config = readCommandConfig();
  if (isStatus) {
    const status = await readSchemaStatus(config);
    console.log(isJson ? JSON.stringify(status, null, 2) : describe(status));
    return status.missing.length === 0 ? 0 : missingCode;
  }
  const done = await migrateDatabase(config);
  console.log(done.length === 0 ? 'No migration is missing.' : `Migrated: ${done.join(', ')}.`);
  return 0;
}

async function main(): Promise<number> {
  keepFilesPrivate();
  endWithOutput();
  try {
    const { values } = parseArgs({
      options: {
        status: { type: 'boolean', default: false },
        json: { type: 'boolean', default: false },
        help: { type: 'boolean', short: 'h', default: false },
      },
    });
    const lost = lostOption('migrate', values);
    if (lost !== undefined) throw new UsageError(lost);
    if (values.json && !values.status) throw new UsageError('--json belongs to --status');
    if (values.help) console.log(usage);
    return values.help ? 0 : await run(values.status, values.json);
  } catch (error) {
    const { code } = error as { code?: unknown };
    const isUsage = error instanceof UsageError || String(code).startsWith('ERR_PARSE_ARGS');
    if (isUsage) console.error(`migrate: ${(error as Error).message}\n\n${usage}`);
    else console.error(startFailure(error));
    return isUsage ? 2 : 1;
  }
}

process.exitCode = await main();
