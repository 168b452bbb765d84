import { type RawBuilder, sql } from 'kysely';

/** Whether a column contains a text, case-insensitive; signs of patterns in it stand for themselves. */
export function contains(column: string, text: string): RawBuilder<boolean> {
  const pattern = `%${text.toLowerCase().replaceAll(/[\\%_]/g, '\\$&')}%`;
  return sql<boolean>`lower(${sql.ref(column)}) like ${pattern} escape '\\'`;
}
