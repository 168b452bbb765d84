import { createHmac, randomBytes, randomUUID } from 'node:crypto';
import { link, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type Config, ConfigError } from '../config/config.ts';
import { unusableFile } from '../config/start-failure.ts';
import { ApiError } from '../errors.ts';
import { codeOf } from '../runtime/error-code.ts';
import type { Database } from './database.ts';

/** Purposes of the gateway's signing secrets. */
const secretNames = ['sessions', 'result-links'] as const;
export type SecretName = (typeof secretNames)[number];

type SecretSettings = Pick<Config, 'secret' | 'databaseUrl' | 'dataDir'>;

/**
 * Random bytes (32) under a name, the same for every process of this database. They are kept apart from the data they protect:
 * derived from `SLUICE_SECRET`, or stored in a file of the data folder if the database is a file, too. Only on Postgres without
 * `SLUICE_SECRET` is the database the only storage that all processes share.
 */
export async function readSecret(db: Database, settings: SecretSettings, name: SecretName): Promise<Buffer> {
  if (settings.secret !== undefined) return createHmac('sha256', settings.secret).update(`sluice ${name}`).digest();
  if (settings.databaseUrl !== undefined) return await secretOfDatabase(db, name);
  const file = join(settings.dataDir, `${name}.secret`);
  return (await readSecretFile(file)) ?? (await moveToFile(db, name, file));
}

/** The secrets of this process. Those that lie in the database are missing until that has been reached. */
export class Secrets {
  readonly #known = new Map<SecretName, Buffer>();

  /** Reads all of them. @throws an error of the database if they lie there. */
  async read(db: Database, settings: SecretSettings): Promise<void> {
    for (const name of secretNames) this.#known.set(name, await readSecret(db, settings, name));
  }

  /** @throws ApiError 503 while the secret has not been read. */
  get(name: SecretName): Buffer {
    const secret = this.#known.get(name);
    if (secret !== undefined) return secret;
    throw new ApiError('service_unavailable', 'The database is unavailable for now. Try again later.', {
      retryAfterMs: 2000,
    });
  }
}

function secretOfDatabase(db: Database, name: SecretName): Promise<Buffer> {
  return valueOfDatabase(db, name, () => randomBytes(32));
}

/** A value that the database keeps under a name, the same for all its processes: the first one makes it. */
export async function valueOfDatabase(db: Database, name: string, make: () => Buffer): Promise<Buffer> {
  const read = db.selectFrom('secrets').select('value').where('name', '=', name);
  const known = await read.executeTakeFirst();
  if (known !== undefined) return Buffer.from(known.value);
  await db
    .insertInto('secrets')
    .values({ name, value: make() })
    .onConflict((conflict) => conflict.column('name').doNothing())
    .execute();
  return Buffer.from((await read.executeTakeFirstOrThrow()).value);
}

/** Moves the secret of earlier versions from the database to the file, so that links stay valid; otherwise creates a new one. */
async function moveToFile(db: Database, name: SecretName, file: string): Promise<Buffer> {
  const known = await db.selectFrom('secrets').select('value').where('name', '=', name).executeTakeFirst();
  const secret = known === undefined ? randomBytes(32) : Buffer.from(known.value);
  const draft = `${file}-${randomUUID()}`;
  try {
    await writeFile(draft, `${secret.toString('base64url')}\n`, { mode: 0o600 });
    // A link is created atomically: if several processes start at once, the first one's secret counts.
    await link(draft, file);
  } catch (error) {
    if (codeOf(error) !== 'EEXIST') throw unusableFile(file, error);
  } finally {
    await rm(draft, { force: true });
  }
  await db.deleteFrom('secrets').where('name', '=', name).execute();
  const kept = await readSecretFile(file);
  if (kept === undefined) throw new Error(`${file} is gone`);
  return kept;
}

async function readSecretFile(file: string): Promise<Buffer | undefined> {
  try {
    const secret = Buffer.from((await readFile(file, 'utf8')).trim(), 'base64url');
    if (secret.length < 32) throw new ConfigError(`${file} is not a secret: remove it, and a new one is made.`);
    return secret;
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined;
    throw error instanceof ConfigError ? error : unusableFile(file, error);
  }
}
