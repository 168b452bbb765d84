import assert from 'node:assert/strict';

/** An error in Anthropic's shape. */
export interface AnthropicErrorDetails {
  readonly type: string;
  readonly message: string;
}

/** Reads an answer that must be an error of this status and type, in Anthropic's shape. */
export async function assertAnthropicError(
  response: Response,
  status: number,
  type: string,
): Promise<AnthropicErrorDetails> {
  const text = await response.text();
  assert.equal(response.status, status, text);
  assert.match(response.headers.get('content-type') ?? '', /^application\/json/);
  const { error, request_id: requestId, ...rest } = JSON.parse(text);
  assert.deepEqual(rest, { type: 'error' });
  const { details: _, ...shown } = error;
  assert.deepEqual(Object.keys(shown).sort(), ['message', 'type']);
  assert.equal(error.type, type, error.message);
  assert.match(requestId, /^(job|req)_[0-9a-f]{32}$/);
  assert.equal(response.headers.get('x-request-id'), requestId);
  assert.equal(response.headers.get('request-id'), requestId);
  return error;
}
