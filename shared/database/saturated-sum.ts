import { PostgresAdapter, type RawBuilder, sql } from 'kysely';
import type { Database } from './database.ts';

/** Maximum of a sum. Larger sums stay there: they must neither fail nor lose their last digits. */
export const maxSum = Number.MAX_SAFE_INTEGER;

/** The sum of a column's whole numbers, 0 for no rows, at most `maxSum`. SQLite's own `sum` fails on overflow. */
export function saturatedSum(db: Database, column: string): RawBuilder<number> {
  const named = sql.ref(column);
  if (isPostgres(db)) return sql<number>`least(${sql.lit(maxSum)}, coalesce(sum(${named}), 0))`;
  return sql<number>`min(${sql.lit(maxSum)}, total(${named}))`;
}

/** SQL for adding two columns or values, limited to `maxSum`. */
export function saturatedAddition(db: Database, one: string, other: string): string {
  const least = isPostgres(db) ? 'least' : 'min';
  return `${least}(${maxSum}, ${least}(${maxSum}, ${one}) + ${least}(${maxSum}, ${other}))`;
}

function isPostgres(db: Database): boolean {
  return db.getExecutor().adapter instanceof PostgresAdapter;
}
