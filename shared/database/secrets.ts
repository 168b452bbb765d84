import { randomBytes } from 'node:crypto';
import type { Database } from './database.ts';

/** Random bytes (32) under a name, the same for every process of this database; made by the first that asks. */
export async function readSecret(db: Database, name: string): Promise<Buffer> {
  await db
    .insertInto('secrets')
    .values({ name, value: randomBytes(32) })
    .onConflict((conflict) => conflict.column('name').doNothing())
    .execute();
  const { value } = await db.selectFrom('secrets').select('value').where('name', '=', name).executeTakeFirstOrThrow();
  return Buffer.from(value);
}
