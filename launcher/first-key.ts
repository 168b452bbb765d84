import { join } from 'node:path';
import { defaultAccountId, ensureApiKey, newApiKeyText } from '../shared/accounts/api-keys.ts';
import type { Database } from '../shared/database/database.ts';
import { secretOfFile } from './secret-file.ts';

/** A key to show at start. The database has only hashes, so its text is stored in a file of the data folder. */
export interface FirstKey {
  readonly text: string;
  /** The file with the text, readable by its owner only. */
  readonly file: string;
  readonly revoked: boolean;
}

/** The key in the file `api-key` of the data folder; if missing, creates a key and the file. */
export async function firstKey(db: Database, dataDir: string): Promise<FirstKey> {
  const file = join(dataDir, 'api-key');
  const { text } = await secretOfFile(file, newApiKeyText);
  // The file comes first: an interrupted start leaves a text that the next start turns into a key.
  const outcome = await ensureApiKey(db, text, { accountId: defaultAccountId, name: 'npm start' });
  return { text, file, revoked: outcome === 'revoked' };
}
