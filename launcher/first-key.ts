import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { defaultAccountId, ensureApiKey, newApiKeyText } from '../shared/api-keys.ts';
import type { Database } from '../shared/database/database.ts';

/** A key to show at start. The database has only hashes, so its text is in a file of the data folder. */
export interface FirstKey {
  readonly text: string;
  /** The file that has the text, readable by its owner only. */
  readonly file: string;
  readonly revoked: boolean;
}

/** The key of the file `api-key` in the data folder; without the file a new key, and the file. */
export async function firstKey(db: Database, dataDir: string): Promise<FirstKey> {
  const file = join(dataDir, 'api-key');
  const text = (await readKeyFile(file)) ?? (await writeKeyFile(file));
  // The file comes first: a start that is cut in between leaves a text that the next start makes a key.
  const outcome = await ensureApiKey(db, text, { accountId: defaultAccountId, name: 'npm start' });
  return { text, file, revoked: outcome === 'revoked' };
}

async function readKeyFile(file: string): Promise<string | undefined> {
  try {
    return (await readFile(file, 'utf8')).trim() || undefined;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

async function writeKeyFile(file: string): Promise<string> {
  const text = newApiKeyText();
  await writeFile(file, `${text}\n`, { mode: 0o600 });
  return text;
}
