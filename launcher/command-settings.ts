import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseEnv } from 'node:util';
import { addToEnvironment, type Config, childEnvironment, readConfig } from '../shared/config/config.ts';
import { fileReason, isThere, unusableFile } from '../shared/config/start-failure.ts';
import { databaseFile } from '../shared/database/database.ts';

/** Beside `package.json`, where `npm start` reads it, too. */
export const environmentFile = fileURLToPath(new URL('../../.env', import.meta.url));

/**
 * The settings of `npm run keys`, `users` and `migrate`. They are those of `npm start`, with the file `.env`: else a command
 * would work on another database than the gateway. What the shell sets stays. The configuration file has nothing for them, and they
 * run where it is broken, or names variables that only the gateway has: a leaked key must be revoked all the same.
 * @throws ConfigError
 */
export function readCommandConfig(): Config {
  loadEnvironmentFile(environmentFile);
  return readConfig(childEnvironment({ SLUICE_CONFIG: '' }));
}

/** Loads a file of settings, if there is one, and tells which of its lines set nothing. @throws ConfigError when it cannot be read */
export function loadEnvironmentFile(file: string): void {
  const text = readEnvironmentFile(file);
  addToEnvironment(parseEnv(text));
  tellLinesWithoutName(file, text);
}

/** Tells on stderr which lines of a file of settings set nothing, if there is one. @throws ConfigError when it cannot be read */
export function checkEnvironmentFile(file: string): void {
  tellLinesWithoutName(file, readEnvironmentFile(file));
}

/** The text of a file of settings; empty if there is none. @throws ConfigError when it cannot be read */
function readEnvironmentFile(file: string): string {
  if (!existsSync(file)) return '';
  try {
    // Editors of Windows put a mark before the first name, which would be a part of it.
    const text = readFileSync(file, 'utf8').replace(/^\ufeff/, '');
    if (text.includes('\0')) throw new Error('it is not written in UTF-8');
    return text;
  } catch (error) {
    throw unusableFile(file, error);
  }
}

/** Lines without a `=` set nothing, unless they are a part of a value in quotes. They may have a secret in them. */
function tellLinesWithoutName(file: string, text: string): void {
  const lines = text.replace(/=[ \t]*(["'`])[\s\S]*?\1/g, (value) => value.replace(/[^\n]/g, '=')).split('\n');
  for (const [index, line] of lines.entries()) {
    if (!/^\s*[^\s#=][^=]*$/.test(line)) continue;
    console.error(`${file}: line ${index + 1} has no "=", so it sets nothing. A setting is NAME=value.`);
  }
}

/** The exit code of a program that SIGPIPE has ended. */
const unreadCode = 141;

/**
 * Ends the command once nobody reads what it prints, as with `| head -1`, or its file cannot be written.
 * @param notice what is said to be lost with it; undefined: nothing
 */
export function endWithOutput(notice: () => string | undefined = () => undefined): void {
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    const isUnread = error.code === 'EPIPE';
    if (!isUnread) console.error(`The output cannot be written: ${fileReason(error)}.`);
    const lost = notice();
    if (lost !== undefined) console.error(lost);
    process.exit(isUnread ? unreadCode : 1);
  });
}

/** Says on stderr that the command makes a new database, which a gateway with other settings does not know. */
export function warnOfNewDatabase({ databaseUrl, dataDir }: Config): void {
  if (databaseUrl !== undefined || isThere(join(dataDir, databaseFile))) return;
  console.error(
    `There is no database in ${dataDir} yet, so a new one is made: a gateway with another SLUICE_DATA_DIR or DATABASE_URL does not know it.`,
  );
}

/**
 * What is wrong with a command line without `--`: npm takes the options behind a script's name for its own, and passes them on in
 * the environment only. The command would run without them.
 * @param given the options that the command has got
 * @returns undefined: nothing
 */
export function lostOption(command: string, given: Readonly<Record<string, unknown>>): string | undefined {
  const environment = childEnvironment({});
  if (environment.npm_lifecycle_event !== command) return undefined;
  const lost = Object.keys(given).find(
    (name) => (given[name] ?? false) === false && environment[`npm_config_${name.replaceAll('-', '_')}`],
  );
  if (lost === undefined) return undefined;
  return `npm has kept --${lost} for itself, and nothing was done: write npm run ${command} -- …, with -- before all options`;
}
