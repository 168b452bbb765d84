/** `npm run keys -- create | list | revoke`: API keys from the command line, also while the gateway runs. */
import { parseArgs } from 'node:util';
import { findAccount } from '../shared/accounts/accounts.ts';
import { type KeySettings, keyStatus } from '../shared/accounts/api-key.ts';
import {
  type ApiKey,
  createApiKey,
  defaultAccountId,
  findApiKeys,
  generatedKeysIn,
  listApiKeys,
} from '../shared/accounts/api-keys.ts';
import { revokeApiKey, revokeInDatabase } from '../shared/accounts/change-api-key.ts';
import { type Config, ConfigError } from '../shared/config/config.ts';
import { startFailure } from '../shared/config/start-failure.ts';
import { type Database, openDatabase } from '../shared/database/database.ts';
import { toDollars } from '../shared/money/cost.ts';
import { connectRedis } from '../shared/redis/redis.ts';
import { createLogger } from '../shared/runtime/log.ts';
import { keepFilesPrivate } from '../shared/runtime/private-files.ts';
import { endWithOutput, lostOption, readCommandConfig, warnOfNewDatabase } from './command-settings.ts';
import { keyOptions, keyOptionsHelp, keyTable, readKeySettings } from './key-settings.ts';
import { readRedisAddress } from './redis-address.ts';

const usage = `usage:
  npm run keys -- create [--name NAME] [--account ID] [--operator] [--concurrency N] [--on-disconnect cancel|continue]
                           [--unsupported-parameters refuse|drop] [--expires-in-days N] [--capabilities LIST]
                           [--models LIST] [--rpm N] [--tpm N] [--budget DOLLARS] [--budget-period PERIOD]
                           [--cache-breakpoints caller|automatic] [--single-flight on|off] [--cache-seconds N]
                           [--priority PRIORITY] [--max-priority PRIORITY] [--vendor-ids LIST] [--json]
  npm run keys -- list [--json]
  npm run keys -- revoke ID [--json]

  --account        the id of the account that it belongs to; without it, the first one
  --operator       a key for /admin/v1, and for nothing else
${keyOptionsHelp}
  ID               a key's id, the beginning of the key as list shows it, or the whole key`;

/** The commands with their number of operands. */
const operandCounts = new Map([
  ['create', 0],
  ['list', 0],
  ['revoke', 1],
]);

/** The options of `create`. */
const createOptions = {
  name: { type: 'string' },
  account: { type: 'string' },
  operator: { type: 'boolean', default: false },
  ...keyOptions,
} as const;

/** Characters of an operand that a message repeats: as many as an id has. */
const maxShown = 28;
/** How long a revocation waits for Redis. */
const redisDeadlineMs = 10_000;

/** An invalid command line: exit code 2. */
class UsageError extends Error {
  override readonly name = 'UsageError';
}

type Arguments = ReturnType<typeof readArguments>;

function readArguments() {
  try {
    const { values, positionals } = parseArgs({
      allowPositionals: true,
      options: {
        ...createOptions,
        json: { type: 'boolean', default: false },
        help: { type: 'boolean', short: 'h', default: false },
      },
    });
    refuseLost(values);
    return { ...values, positionals };
  } catch (error) {
    throw new UsageError((error as Error).message);
  }
}

/** @throws Error for an option that npm has not passed on. */
function refuseLost(values: Readonly<Record<string, unknown>>): void {
  const names = [...Object.keys(createOptions), 'json'];
  const lost = lostOption('keys', { ...Object.fromEntries(names.map((name) => [name, undefined])), ...values });
  if (lost !== undefined) throw new Error(lost);
}

function say(args: Arguments, value: unknown, text: string): void {
  console.log(args.json ? JSON.stringify(value, (_, field) => field ?? null, 2) : text);
}

/** What is said if nobody reads the key that was made: its text is shown once. */
let lostKey: string | undefined;

/** As in the console. */
const maxNameLength = 100;

async function create(db: Database, args: Arguments, settings: Partial<KeySettings>): Promise<void> {
  const { account: accountId = defaultAccountId } = args;
  if ((await findAccount(db, accountId)) === undefined) throw new ConfigError(`There is no account ${accountId}.`);
  const created = await createApiKey(db, {
    accountId,
    name: args.name ?? '',
    kind: args.operator ? 'operator' : 'standard',
    ...settings,
  });
  lostKey = `keys: the key ${created.id} was made, and nobody has read it: npm run keys -- revoke ${created.id} revokes it.`;
  say(args, created, `${created.key}\n\nIts id is ${created.id}. The key is shown only now: keep it.`);
}

function readSettings(args: Arguments): Partial<KeySettings> {
  if ((args.name ?? '').length > maxNameLength) {
    throw new UsageError(`--name takes at most ${maxNameLength} characters`);
  }
  try {
    return readKeySettings(args, Date.now());
  } catch (error) {
    throw new UsageError((error as Error).message);
  }
}

async function list(db: Database, args: Arguments): Promise<void> {
  const [keys, now] = [await listApiKeys(db), Date.now()];
  const shown = keys.map(({ hash: _hash, budget, ...key }) => ({
    ...key,
    budget: budget && { ...budget, amount: toDollars(budget.amount) },
    status: keyStatus(key, now),
  }));
  say(args, shown, keyTable(keys, now));
}

/** The database comes first. Without a Redis now, its next start comes later, and then it gets every revoked key. */
async function revoke(db: Database, config: Config, args: Arguments): Promise<void> {
  const idOrText = args.positionals[1] ?? '';
  const key = chooseKey(await findApiKeys(db, idOrText.replace(/…$/, '')), idOrText);
  await revokeInDatabase(db, key);
  const url = config.redisUrl ?? readRedisAddress(config.dataDir)?.url;
  if (url === undefined) {
    const later = 'No gateway of npm start runs here, so this holds from its next start on';
    const other = 'a gateway that runs with a REDIS_URL takes the key until this is run with the same REDIS_URL';
    say(args, { id: key.id, revoked: true, redis: false }, `Revoked ${key.id}. ${later}; ${other}.`);
    return;
  }
  try {
    await tellRedis(db, url, config, key);
  } catch (error) {
    throw new ConfigError(
      `Revoking ${key.id} is not complete (${(error as Error).message.replace(/\.$/, '')}): a gateway that runs may still take the key, so run this again.`,
    );
  }
  say(args, { id: key.id, revoked: true, redis: true }, `Revoked ${key.id}: it is refused from now on.`);
}

async function tellRedis(db: Database, url: string, { redisTls }: Config, key: ApiKey): Promise<void> {
  const redis = await connectRedis(url, createLogger('silent', 'keys').log, redisTls);
  const deadline = setTimeout(() => void redis.close(), redisDeadlineMs);
  try {
    await revokeApiKey(db, redis.client, key);
  } finally {
    clearTimeout(deadline);
    await redis.close();
  }
}

function chooseKey(keys: ApiKey[], idOrText: string): ApiKey {
  const [key, other] = keys;
  // It may be a whole key, of another gateway: nothing that is printed repeats one.
  const named = idOrText.length > maxShown ? 'with this text' : idOrText;
  if (key === undefined) throw new ConfigError(`There is no key ${named}: npm run keys -- list shows all.`);
  if (other !== undefined) throw new ConfigError(`Several keys begin with ${named}: give the id.`);
  return key;
}

async function run(args: Arguments): Promise<void> {
  const [command, ...operands] = args.positionals;
  const expected = operandCounts.get(command ?? '');
  if (expected === undefined) throw new UsageError(command ? `unknown command ${command}` : 'a command is missing');
  // A revocation at once is not what --expires-in-days asks for beside it.
  const settings = Object.entries(args).filter(([name]) => Object.hasOwn(createOptions, name));
  const [other] = settings.find(([, value]) => value !== undefined && value !== false) ?? [];
  if (command !== 'create' && other !== undefined) throw new UsageError(`--${other} belongs to create`);
  if (operands.length !== expected)
    throw new UsageError(`${command} takes ${expected === 0 ? 'no operand' : 'one id'}`);
  // The other ones would stay valid without a word.
  if (command === 'revoke' && generatedKeysIn(operands[0] ?? '').length > 1)
    throw new UsageError('revoke takes one key at a time');
  // A mistake in it must not make a new database.
  const keySettings = readSettings(args);
  const config = readCommandConfig();
  warnOfNewDatabase(config);
  const db = await openDatabase(config);
  try {
    if (command === 'create') await create(db, args, keySettings);
    else if (command === 'list') await list(db, args);
    else await revoke(db, config, args);
  } finally {
    await db.destroy();
  }
}

async function main(): Promise<number> {
  keepFilesPrivate();
  endWithOutput(() => lostKey);
  try {
    const args = readArguments();
    if (args.help) console.log(usage);
    else await run(args);
    return 0;
  } catch (error) {
    if (error instanceof UsageError) console.error(`keys: ${error.message}\n\n${usage}`);
    else console.error(startFailure(error));
    return error instanceof UsageError ? 2 : 1;
  }
}

process.exitCode = await main();
