import { noticeSignedOut } from '../../api/query-client.ts';
import { address, noAnswer, readError } from '../../api/request.ts';

/** Content of a call, in addition to its path: a JSON body, a form, or neither. */
export interface CallOptions {
  readonly method?: 'GET' | 'POST' | 'DELETE';
  readonly json?: unknown;
  readonly form?: FormData;
  readonly signal?: AbortSignal;
}

/**
 * Calls an endpoint of the playground: `call('/v1/chat/completions', …)`, without a timeout. Returns only successful
 * responses.
 * @throws RequestError; an AbortError when the signal is aborted.
 */
export async function call(path: string, { method, json, form, signal }: CallOptions = {}): Promise<Response> {
  const response = await send(address(path), {
    method: method ?? (json === undefined && form === undefined ? 'GET' : 'POST'),
    ...(json !== undefined && { body: JSON.stringify(json), headers: { 'content-type': 'application/json' } }),
    ...(form !== undefined && { body: form }),
    ...(signal !== undefined && { signal }),
  });
  if (response.ok) return response;
  const error = await readError(response);
  noticeSignedOut(error);
  throw error;
}

/** The message for an answer that ended before it was complete. */
export const brokenOff = 'The connection broke off before the answer was complete.';

/** The id of a request's job: `job_…`. */
export function jobIdOf(response: Response): string | undefined {
  return response.headers.get('x-request-id') ?? undefined;
}

/** The error's message; never empty. */
export function messageOf(error: unknown): string {
  // What reading a response throws when its connection breaks: "network error", or what else a browser calls it.
  if (error instanceof TypeError) return brokenOff;
  return error instanceof Error && error.message !== '' ? error.message : String(error);
}

/** Whether the user aborted it. */
export function isAbort(error: unknown): boolean {
  return error instanceof DOMException && error.name === 'AbortError';
}

async function send(url: string, init: RequestInit): Promise<Response> {
  try {
    return await fetch(url, init);
  } catch (error) {
    if (isAbort(error)) throw error;
    throw noAnswer();
  }
}
