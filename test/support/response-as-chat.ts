import assert from 'node:assert/strict';
import { chatRequest } from '../../shared/capabilities/chat.ts';
import type { ResponseItem } from '../../shared/capabilities/response.ts';
import { toChatRequest } from '../../workers/execute/response-as-chat.ts';

type Fields = Record<string, unknown>;

/** The chat request that a response job becomes: one that the chat endpoint would take too. */
export function translate(fields: Fields, input: readonly unknown[] = [{ role: 'user', content: 'Hi' }]): Fields {
  const request = JSON.parse(toChatRequest({ input: input as ResponseItem[], ...fields }));
  assert.equal(chatRequest.validate({ model: 'm', ...request }), true, JSON.stringify(request));
  return request;
}
