import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Config, readConfig } from '../shared/config/config.ts';
import { databaseFile } from '../shared/database/database.ts';

/** Beside `package.json`, where `npm start` reads it, too. */
const environmentFile = fileURLToPath(new URL('../../.env', import.meta.url));

/**
 * The settings of `npm run keys`, `users` and `migrate`. They are those of `npm start`, with the file `.env`: else a command
 * would work on another database than the gateway. What the shell sets stays.
 * @throws ConfigError
 */
export function readCommandConfig(): Config {
  if (existsSync(environmentFile)) process.loadEnvFile(environmentFile);
  return readConfig();
}

/** Says on stderr that the command makes a new database, which a gateway with other settings does not know. */
export function warnOfNewDatabase({ databaseUrl, dataDir }: Config): void {
  if (databaseUrl !== undefined || existsSync(join(dataDir, databaseFile))) return;
  console.error(
    `There is no database in ${dataDir} yet, so a new one is made: a gateway with another SLUICE_DATA_DIR or DATABASE_URL does not know it.`,
  );
}
