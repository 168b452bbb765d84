/** A process of the database suites: opens the database and inserts accounts, each in a transaction. */
import { openDatabase } from '../../shared/database/database.ts';

const [name = '', times = '0', dataDir = '', databaseUrl] = process.argv.slice(2);
const db = await openDatabase({ dataDir, databaseUrl });
for (let number = 1; number <= Number(times); number++) {
  await db.transaction().execute(async (transaction) => {
    await transaction.selectFrom('accounts').selectAll().execute();
    await transaction
      .insertInto('accounts')
      .values({ id: `${name}-${number}`, name, created_at: number })
      .execute();
  });
}
await db.destroy();
process.disconnect();
