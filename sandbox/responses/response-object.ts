import type { Usage } from '../chat/usage.ts';
import type { WireError } from '../wire-error.ts';
import { finishedItem, type PlannedItem } from './output-items.ts';
import type { ResponseRequest } from './response-request.ts';

/** A response with its whole answer, before it is serialized. */
export interface PlannedResponse {
  id: string;
  /** Unix seconds. */
  created: number;
  request: ResponseRequest;
  items: readonly PlannedItem[];
  /** Whether the token limit truncated it. */
  isTruncated: boolean;
  usage: Usage;
  /** `false`: the usage is left out. */
  reportsUsage: boolean;
}

/** The response while it is in progress. */
export function openResponse(response: PlannedResponse): object {
  return responseObject(response, { status: 'in_progress' });
}

/** The response at its end: completed, or incomplete if the limit truncated it. */
export function endedResponse(response: PlannedResponse): object {
  const { items, request, isTruncated, usage, reportsUsage } = response;
  return responseObject(response, {
    status: isTruncated ? 'incomplete' : 'completed',
    completed_at: isTruncated ? null : Math.floor(Date.now() / 1000),
    incomplete_details: isTruncated ? { reason: 'max_output_tokens' } : null,
    output: items.map((item) => finishedItem(item, request)),
    usage: reportsUsage ? toResponseUsage(usage) : null,
  });
}

/** The failed response; none of its output is kept. */
export function failedResponse(response: PlannedResponse, { code, message }: WireError): object {
  return responseObject(response, { status: 'failed', error: { code: code ?? 'server_error', message } });
}

/** All members of a Response, in OpenAI's order. */
function responseObject({ id, created, request }: PlannedResponse, state: object): object {
  return {
    id,
    object: 'response',
    created_at: created,
    status: 'in_progress',
    completed_at: null,
    error: null,
    incomplete_details: null,
    output: [],
    ...request.shown,
    usage: null,
    ...state,
  };
}

function toResponseUsage(usage: Usage) {
  return {
    input_tokens: usage.prompt_tokens,
    input_tokens_details: { cached_tokens: usage.prompt_tokens_details.cached_tokens, cache_write_tokens: 0 },
    output_tokens: usage.completion_tokens,
    output_tokens_details: { reasoning_tokens: usage.completion_tokens_details.reasoning_tokens },
    total_tokens: usage.total_tokens,
  };
}
