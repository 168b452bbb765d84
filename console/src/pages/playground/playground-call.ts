import { address, RequestError, readError } from '../../api/request.ts';

/** What a call sends, beside its path: a JSON body or a form, or neither. */
export interface CallOptions {
  readonly method?: 'GET' | 'POST' | 'DELETE';
  readonly json?: unknown;
  readonly form?: FormData;
  readonly signal?: AbortSignal;
}

/**
 * Calls an endpoint of the playground: `call('/v1/chat/completions', …)`. It may take as long as it does; what comes back
 * is a good answer.
 * @throws RequestError; an AbortError when the signal says so.
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

/** The id of the job that a request made: `job_…`. */
export function jobIdOf(response: Response): string | undefined {
  return response.headers.get('x-request-id') ?? undefined;
}

/** What went wrong, in words; never empty. */
export function messageOf(error: unknown): string {
  return error instanceof Error && error.message !== '' ? error.message : String(error);
}

/** Whether it was the person who ended it. */
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
