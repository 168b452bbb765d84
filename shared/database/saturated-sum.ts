import { PostgresAdapter, type RawBuilder, sql } from 'kysely';
import type { Database } from './database.ts';

/** The most that a sum comes to. What adds up to more stays there: it must neither fail nor lose its last digits. */
export const maxSum = Number.MAX_SAFE_INTEGER;

/** The sum of a column's whole numbers, 0 of no rows, at most `maxSum`. SQLite's own `sum` fails where it overflows. */
export function saturatedSum(db: Database, column: string): RawBuilder<number> {
  const named = sql.ref(column);
  if (isPostgres(db)) return sql<number>`least(${sql.lit(maxSum)}, coalesce(sum(${named}), 0))`;
  return sql<number>`min(${sql.lit(maxSum)}, total(${named}))`;
}

/** The text of an expression that adds two columns, or values, and comes to `maxSum` at most. */
export function saturatedAddition(db: Database, one: string, other: string): string {
  const least = isPostgres(db) ? 'least' : 'min';
  return `${least}(${maxSum}, ${least}(${maxSum}, ${one}) + ${least}(${maxSum}, ${other}))`;
}

function isPostgres(db: Database): boolean {
  return db.getExecutor().adapter instanceof PostgresAdapter;
}
