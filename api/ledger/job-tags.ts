import type { SqlBool } from 'kysely';
import { type RawBuilder, sql } from 'kysely';

/** A pair of the `metadata` of a request. */
export interface JobTag {
  readonly name: string;
  readonly value: string;
}

/**
 * Whether a job's `metadata` has a pair. Compares text: a name and its value are adjacent in JSON, and lookalikes inside
 * another string have escaped quotes. This works in both databases and avoids a parse per row.
 */
export function tagCondition({ name, value }: JobTag): RawBuilder<SqlBool> {
  const pair = `${JSON.stringify(name)}:${JSON.stringify(value)}`;
  const has = (text: string) => sql<SqlBool>`replace(metadata, ${text}, '') <> metadata`;
  return sql<SqlBool>`(${has(`{${pair}`)} or ${has(`,${pair}`)})`;
}
