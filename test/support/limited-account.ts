import { ensureAccount } from '../../shared/accounts/accounts.ts';
import type { NewApiKey } from '../../shared/accounts/api-keys.ts';
import { openDatabase } from '../../shared/database/database.ts';
import type { TestGateway } from './gateway.ts';
import { makeApiKey } from './make-api-key.ts';

let made = 0;

/** Makes an account that may spend no more than its credit (nano-dollars, none by default), and a key of it. */
export async function makeLimitedAccount(
  gateway: TestGateway,
  { credit = 0, ...key }: Partial<NewApiKey> & { readonly credit?: number } = {},
): Promise<{ readonly id: string; readonly key: string }> {
  const id = `limited${++made}`;
  const db = await openDatabase(gateway);
  try {
    await ensureAccount(db, { id, name: id }, { amount: credit, note: 'a test', createdBy: 'test' });
  } finally {
    await db.destroy();
  }
  return { id, key: await makeApiKey(gateway, { ...key, accountId: id }) };
}
