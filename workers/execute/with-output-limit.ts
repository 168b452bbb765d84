import type { QueuedJob } from '../../shared/queue/queue.ts';

/** What the limit is called in the request of each endpoint that has one; the vendor's adapter gives it the vendor's name. */
const limitNames: Readonly<Record<string, string>> = {
  chat: 'max_completion_tokens',
  completions: 'max_tokens',
  responses: 'max_output_tokens',
};

/** OpenAI refuses a response that may be shorter. What that is over the limit costs nobody but the gateway. */
const minOfResponse = 16;

/**
 * The request with the limit that the gateway sets its answer, as if the caller had set it. It is put behind the last field:
 * a request may be megabytes, and some of its fields have to be the first. A null that the caller gave comes before it, and
 * so is overruled.
 */
export function withOutputLimit(
  request: string,
  { endpoint, outputLimit }: Pick<QueuedJob, 'endpoint' | 'outputLimit'>,
): string {
  const name = Object.hasOwn(limitNames, endpoint) ? limitNames[endpoint] : undefined;
  if (outputLimit === undefined || name === undefined) return request;
  const limit = endpoint === 'responses' ? Math.max(minOfResponse, outputLimit) : outputLimit;
  const fields = request.slice(0, request.lastIndexOf('}')).trimEnd();
  return `${fields}${fields.endsWith('{') ? '' : ','}"${name}":${limit}}`;
}
