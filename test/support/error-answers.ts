import assert from 'node:assert/strict';

/** What stands in the `error` of an error answer. */
export interface ErrorDetails {
  readonly message: string;
  readonly type: string;
  readonly param: string | null;
  readonly code: string | null;
}

/** The error in a parsed body or event, its shape checked: these four fields, of their types, and nothing beside them. */
export function errorDetails(body: unknown): ErrorDetails {
  const { error, ...rest } = body as { error: ErrorDetails };
  assert.deepEqual(rest, {}, 'nothing beside the error');
  assert.deepEqual(Object.keys(error).sort(), ['code', 'message', 'param', 'type']);
  assert.ok(typeof error.message === 'string' && error.message !== '');
  assert.ok(typeof error.type === 'string');
  assert.ok(error.param === null || typeof error.param === 'string');
  assert.ok(typeof error.code === 'string');
  return error;
}

/** The error in the last event of a broken stream of completions, which no client can read as a chunk. */
export function completionErrorDetails(event: unknown): ErrorDetails {
  const { choices, ...rest } = event as { choices: unknown };
  assert.equal(choices, false);
  return errorDetails(rest);
}

/** Reads an answer that must be an error of this status and code, in the error shape. */
export async function assertErrorAnswer(response: Response, status: number, code: string): Promise<ErrorDetails> {
  const text = await response.text();
  assert.equal(response.status, status, text);
  assert.match(response.headers.get('content-type') ?? '', /^application\/json/);
  assert.match(response.headers.get('x-request-id') ?? '', /^(job|req)_[0-9a-f]{32}$/);
  const error = errorDetails(JSON.parse(text));
  assert.equal(error.code, code, error.message);
  const expectedType = status >= 500 ? 'server_error' : status === 429 ? code : 'invalid_request_error';
  assert.equal(error.type, expectedType);
  return error;
}
