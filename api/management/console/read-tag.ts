import type { ParsedUrlQuery } from 'node:querystring';
import { storableText } from '../../../shared/database/select-rows.ts';
import { invalidQuery, readText } from '../../http/read-query.ts';
import type { JobTag } from '../../ledger/job-tags.ts';

/** Reads the parameter `tag`, as `name:value`. A name has no colon: the first one ends it. @throws ApiError 400. */
export function readTag(query: ParsedUrlQuery): JobTag | undefined {
  const text = readText(query, 'tag');
  if (text === undefined) return undefined;
  const colon = text.indexOf(':');
  if (colon < 1) throw invalidQuery('tag', 'name:value');
  return { name: storableText(text.slice(0, colon)), value: storableText(text.slice(colon + 1)) };
}
