import type { QueuedJob } from '../../shared/queue/queue.ts';
import { type RequestBody, requestText } from '../vendors/request-body.ts';

/** The limit's name in the request of each endpoint that has one; the vendor's adapter translates it. */
const limitNames: Readonly<Record<string, string>> = {
  chat: 'max_completion_tokens',
  completions: 'max_tokens',
  responses: 'max_output_tokens',
};

/** OpenAI refuses a response with a lower limit. Only the gateway pays for the tokens over the limit. */
const minOfResponse = 16;

/**
 * Adds the limit that the gateway sets to the request, as if the caller had set it. It goes behind the last field: a request may
 * be megabytes, and some of its fields must be the first. A null from the caller comes earlier, and so is overridden.
 */
export function withOutputLimit(
  request: RequestBody,
  { endpoint, outputLimit }: Pick<QueuedJob, 'endpoint' | 'outputLimit'>,
): RequestBody {
  const name = Object.hasOwn(limitNames, endpoint) ? limitNames[endpoint] : undefined;
  if (outputLimit === undefined || name === undefined) return request;
  const limit = endpoint === 'responses' ? Math.max(minOfResponse, outputLimit) : outputLimit;
  const text = requestText(request);
  const fields = text.slice(0, text.lastIndexOf('}')).trimEnd();
  return `${fields}${fields.endsWith('{') ? '' : ','}"${name}":${limit}}`;
}
