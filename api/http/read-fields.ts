import type { z } from 'zod';
import { ApiError } from '../../shared/errors.ts';
import { invalidRequest, unlessUnreadable } from '../pipeline/request-fields.ts';
import type { Context } from '../state.ts';
import { parseJson } from './body/parse-json.ts';
import { readBody } from './body/read-body.ts';

const maxBytes = 64 * 1024;
/** How long such a small body may stall, in ms. */
const silenceMs = 10_000;

/**
 * Reads the fields of a request to the console or by an operator: a small JSON object (64 KiB), parsed by its schema.
 * @throws ApiError 415 without `Content-Type: application/json`, 413, 400 that names the field at fault.
 */
export async function readFields<Schema extends z.ZodType>(ctx: Context, schema: Schema): Promise<z.output<Schema>> {
  // Without a preflight, a browser sends only plain text and forms for another site's page.
  if (ctx.headers['content-type'] === undefined) {
    throw new ApiError('unsupported_media_type', 'Send the body as JSON, with Content-Type application/json.');
  }
  const fields = parseJson(await readBody(ctx, { silenceMs, maxBytes }));
  const read = unlessUnreadable(() => schema.safeParse(fields));
  if (!read?.success) throw invalidRequest(schema, fields);
  return read.data;
}
