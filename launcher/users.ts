/** `npm run users -- reset-link | remove-authenticator EMAIL`: for users who cannot sign in, operators among them. */
import { parseArgs } from 'node:util';
import { type Config, ConfigError, readConfig } from '../shared/config.ts';
import { type Database, openDatabase } from '../shared/database/database.ts';
import { ownBaseUrls } from '../shared/own-addresses.ts';
import { keepFilesPrivate } from '../shared/private-files.ts';
import { makeResetLink } from '../shared/reset-link.ts';
import { removeAuthenticator } from '../shared/users.ts';

const usage = `usage:
  npm run users -- reset-link EMAIL            prints a link to choose a new password, once, within the hour
  npm run users -- remove-authenticator EMAIL  lets a user who has lost it sign in by the password alone`;

/** A command line that cannot be understood: exit code 2. */
class UsageError extends Error {
  override readonly name = 'UsageError';
}

type Command = (db: Database, config: Config, userId: string) => Promise<string>;

const commands: Readonly<Record<string, Command>> = {
  'reset-link': (db, config, userId) => makeResetLink(db, ownBaseUrls(config)[0], userId),
  'remove-authenticator': async (db, _config, userId) => {
    await removeAuthenticator(db, userId);
    return 'The authenticator is removed, and all sessions of the user have ended.';
  },
};

function readArguments(): { command: Command; email: string } | undefined {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { help: { type: 'boolean', short: 'h', default: false } },
  });
  if (values.help) return undefined;
  const [name = '', email = '', ...more] = positionals;
  const command = Object.hasOwn(commands, name) ? commands[name] : undefined;
  if (command === undefined) throw new UsageError(name === '' ? 'a command is missing' : `unknown command ${name}`);
  if (email === '' || more.length > 0) throw new UsageError(`${name} takes one email address`);
  return { command, email: email.toLowerCase() };
}

async function run(command: Command, email: string): Promise<void> {
  const config = readConfig();
  const db = await openDatabase(config);
  try {
    const user = await db.selectFrom('users').select('id').where('email', '=', email).executeTakeFirst();
    if (user === undefined) throw new ConfigError(`There is no user with the address ${email}.`);
    console.log(await command(db, config, user.id));
  } finally {
    await db.destroy();
  }
}

async function main(): Promise<number> {
  keepFilesPrivate();
  try {
    const asked = readArguments();
    if (asked === undefined) console.log(usage);
    else await run(asked.command, asked.email);
    return 0;
  } catch (error) {
    const isUsage = error instanceof UsageError || (error as { code?: string }).code?.startsWith('ERR_PARSE_ARGS');
    if (isUsage) console.error(`users: ${(error as Error).message}\n\n${usage}`);
    else console.error(error instanceof ConfigError ? error.message : (error as Error).stack);
    return isUsage ? 2 : 1;
  }
}

process.exitCode = await main();
