import { type RawBuilder, sql } from 'kysely';

/**
 * Whether a column contains a text, case-insensitive; signs of patterns in it stand for themselves. The database folds both: what
 * it takes for a small letter differs, and SQLite knows the letters of ASCII only. The text in small and in capital letters stands
 * for the others.
 */
export function contains(column: string, text: string): RawBuilder<boolean> {
  const forms = new Set([text, text.toLowerCase(), text.toUpperCase()]);
  const patterns = [...forms].map((form) => `%${form.replaceAll(/[\\%_]/g, '\\$&')}%`);
  const folded = sql`lower(${sql.ref(column)})`;
  const matches = patterns.map((pattern) => sql<boolean>`${folded} like lower(${pattern}) escape '\\'`);
  return sql<boolean>`(${sql.join(matches, sql` or `)})`;
}
