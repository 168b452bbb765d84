import type { Database } from '../../shared/database/database.ts';

/** Rows deleted by one statement, kept low so that other writers get through. */
const batch = 500;

/**
 * Deletes requests and answers whose retention has expired; the jobs' rows stay. Returns the number deleted.
 * @param now ms since 1970
 */
export async function deleteExpiredBodies(db: Database, now: number = Date.now()): Promise<number> {
  let deleted = 0;
  for (;;) {
    const { numDeletedRows } = await db
      .deleteFrom('job_bodies')
      .where('job_id', 'in', (from) =>
        from.selectFrom('job_bodies').select('job_id').where('expires_at', '<=', now).limit(batch),
      )
      .executeTakeFirst();
    deleted += Number(numDeletedRows);
    if (numDeletedRows < BigInt(batch)) return deleted;
  }
}
