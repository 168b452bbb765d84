/** `npm run users -- COMMAND …`: users of the console from the command line, also if sign-in is impossible. */
import { parseArgs } from 'node:util';
import { z } from 'zod';
import { findAccount } from '../shared/accounts/accounts.ts';
import { makeInvitation, makeResetLink } from '../shared/accounts/reset-link.ts';
import {
  changeUser,
  createUser,
  deleteUser,
  listUsers,
  removeAuthenticator,
  type User,
  type UserChanges,
} from '../shared/accounts/users.ts';
import { type Config, ConfigError } from '../shared/config/config.ts';
import { ownBaseUrls } from '../shared/config/own-addresses.ts';
import { startFailure } from '../shared/config/start-failure.ts';
import { type Database, openDatabase } from '../shared/database/database.ts';
import { keepFilesPrivate } from '../shared/runtime/private-files.ts';
import { endWithOutput, lostOption, readCommandConfig, warnOfNewDatabase } from './command-settings.ts';

const usage = `usage:
  npm run users -- list                        prints all users
  npm run users -- invite EMAIL                makes a user, and prints a link to choose a password, once, within 7 days
      --operator                               who may do everything
      --account ID                             of this account; without it, of a new one
  npm run users -- set-role EMAIL user|operator
  npm run users -- disable EMAIL               ends all sessions; nobody signs in as this user until: enable EMAIL
  npm run users -- enable EMAIL
  npm run users -- delete EMAIL                removes the user; the account, its keys and its jobs stay
  npm run users -- reset-link EMAIL            prints a link to choose a new password, once, within the hour
  npm run users -- remove-authenticator EMAIL  lets a user who has lost it sign in by the password alone`;

/** An invalid command line: exit code 2. */
class UsageError extends Error {
  override readonly name = 'UsageError';
}

/** Input of a command. */
interface Call {
  readonly db: Database;
  readonly config: Config;
  /** Operands after the command's name: the first is an email address, in lower case. */
  readonly operands: readonly string[];
  readonly account: string | undefined;
  readonly isOperator: boolean;
}

interface Command {
  /** Number of operands after its name. */
  readonly operands: number;
  /**
   * Returns the text to print.
   * @throws ConfigError
   */
  readonly run: (call: Call) => Promise<string>;
}

const commands: Readonly<Record<string, Command>> = {
  list: { operands: 0, run: ({ db }) => list(db) },
  invite: { operands: 1, run: invite },
  'set-role': { operands: 2, run: setRole },
  disable: {
    operands: 1,
    run: (call) => change(call, { isDisabled: true }, 'The user is disabled, and all sessions ended.'),
  },
  enable: { operands: 1, run: (call) => change(call, { isDisabled: false }, 'The user can sign in again.') },
  delete: { operands: 1, run: remove },
  'reset-link': {
    operands: 1,
    run: async (call) => makeResetLink(call.db, ownBaseUrls(call.config)[0], await idOf(call)),
  },
  'remove-authenticator': {
    operands: 1,
    run: async (call) => {
      await removeAuthenticator(call.db, await idOf(call));
      return 'The authenticator is removed, and all sessions of the user have ended.';
    },
  },
};

async function list(db: Database): Promise<string> {
  const lines = (await listUsers(db, { limit: 100_000 })).map(({ email, role, accountId, isDisabled }) =>
    [email, role, accountId, ...(isDisabled ? ['disabled'] : [])].join('\t'),
  );
  return lines.join('\n');
}

async function invite({ db, config, operands: [email = ''], account, isOperator }: Call): Promise<string> {
  // As at the sign-in: another one could never sign in.
  if (!z.email().max(254).safeParse(email).success) throw new UsageError(`${email} is no email address`);
  if (account !== undefined && (await findAccount(db, account)) === undefined) {
    throw new ConfigError(`There is no account ${account}.`);
  }
  const name = email.slice(0, email.indexOf('@'));
  const role = isOperator ? 'operator' : 'user';
  const user = await createUser(db, { email, name, role, accountId: account, credit: config.signUpCredit });
  if (user === undefined) throw new ConfigError(`There is a user with the address ${email} already.`);
  return makeInvitation(db, ownBaseUrls(config)[0], user.id);
}

function setRole(call: Call): Promise<string> {
  const [, role] = call.operands;
  if (role !== 'user' && role !== 'operator') throw new UsageError('a role is user or operator');
  return change(call, { role }, `The user's role is ${role} now.`);
}

async function change(call: Call, changes: UserChanges, done: string): Promise<string> {
  refuseLastOperator(await changeUser(call.db, await idOf(call), changes));
  return done;
}

async function remove(call: Call): Promise<string> {
  refuseLastOperator(await deleteUser(call.db, await idOf(call)));
  return 'The user is deleted.';
}

function refuseLastOperator(result: User | boolean | 'last_operator' | undefined): void {
  if (result === 'last_operator') {
    throw new ConfigError('This is the last operator who can sign in: name another one first.');
  }
}

async function idOf({ db, operands: [email = ''] }: Call): Promise<string> {
  const user = await db.selectFrom('users').select('id').where('email', '=', email).executeTakeFirst();
  if (user === undefined) throw new ConfigError(`There is no user with the address ${email}.`);
  return user.id;
}

function readArguments(): { command: Command; call: Omit<Call, 'db' | 'config'> } | undefined {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      help: { type: 'boolean', short: 'h', default: false },
      operator: { type: 'boolean', default: false },
      account: { type: 'string' },
    },
  });
  if (values.help) return undefined;
  const lost = lostOption('users', { account: undefined, ...values });
  if (lost !== undefined) throw new UsageError(lost);
  const [name = '', email, ...more] = positionals;
  const command = Object.hasOwn(commands, name) ? commands[name] : undefined;
  if (command === undefined) throw new UsageError(name === '' ? 'a command is missing' : `unknown command ${name}`);
  const operands = email === undefined ? [] : [email.toLowerCase(), ...more];
  if (operands.length !== command.operands) {
    const wanted = ['nothing', 'one email address', 'an email address and a role'][command.operands];
    throw new UsageError(`${name} takes ${wanted}`);
  }
  if (name !== 'invite' && (values.operator || values.account !== undefined)) {
    throw new UsageError('--operator and --account belong to invite');
  }
  return { command, call: { operands, account: values.account, isOperator: values.operator } };
}

async function run({ command, call }: NonNullable<ReturnType<typeof readArguments>>): Promise<void> {
  const config = readCommandConfig();
  warnOfNewDatabase(config);
  const db = await openDatabase(config);
  try {
    console.log(await command.run({ ...call, db, config }));
  } finally {
    await db.destroy();
  }
}

async function main(): Promise<number> {
  keepFilesPrivate();
  endWithOutput();
  try {
    const asked = readArguments();
    if (asked === undefined) console.log(usage);
    else await run(asked);
    return 0;
  } catch (error) {
    const isUsage = error instanceof UsageError || (error as { code?: string }).code?.startsWith('ERR_PARSE_ARGS');
    if (isUsage) console.error(`users: ${(error as Error).message}\n\n${usage}`);
    else console.error(startFailure(error));
    return isUsage ? 2 : 1;
  }
}

process.exitCode = await main();
