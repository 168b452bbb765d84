import type { SqlBool } from 'kysely';
import { type RawBuilder, sql } from 'kysely';

/** A pair of the `metadata` of a request. */
export interface JobTag {
  readonly name: string;
  readonly value: string;
}

/**
 * Whether a job's `metadata` has a pair. As text: a name and its value stand side by side in JSON, and what looks like them
 * inside another string has its quotes escaped. So it is said alike in both databases, and costs neither a parse per row.
 */
export function tagCondition({ name, value }: JobTag): RawBuilder<SqlBool> {
  const pair = `${JSON.stringify(name)}:${JSON.stringify(value)}`;
  const has = (text: string) => sql<SqlBool>`replace(metadata, ${text}, '') <> metadata`;
  return sql<SqlBool>`(${has(`{${pair}`)} or ${has(`,${pair}`)})`;
}
