import { address, RequestError, readError } from '../../api/request.ts';

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
  throw await readError(response);
}

/** The id of a request's job: `job_…`. */
export function jobIdOf(response: Response): string | undefined {
  return response.headers.get('x-request-id') ?? undefined;
}

/** The error's message; never empty. */
export function messageOf(error: unknown): string {
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
    throw new RequestError('The gateway cannot be reached. Check your connection and try again.', { status: 0 });
  }
}
