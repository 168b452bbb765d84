import { requestTags } from './request-fields.ts';

/**
 * The fields of a request without its tags, for endpoints that have no `metadata` at OpenAI: there it is for the gateway alone,
 * and vendors refuse it. What are no tags is passed on.
 */
export function withoutTags<Given extends object>(fields: Given): Given {
  const { metadata, ...rest } = fields as Given & { readonly metadata?: unknown };
  const isEmpty = typeof metadata === 'object' && metadata !== null && Object.keys(metadata).length === 0;
  return isEmpty || requestTags(metadata).metadata !== undefined ? (rest as unknown as Given) : fields;
}
