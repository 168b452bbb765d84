import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { parseChat } from '../../../../api/endpoints/chat/parse-chat.ts';
import { parseMessages } from '../../../../api/endpoints/messages/parse-messages.ts';
import { parseResponse } from '../../../../api/endpoints/responses/parse-response.ts';
import type { Parse } from '../../../../api/pipeline/parsed-request.ts';

const few = 1000;
const many = 10_001;

const listOf = <Item>(count: number, item: (index: number) => Item): Item[] =>
  Array.from({ length: count }, (_, index) => item(index));

const user = { role: 'user', content: 'Hi' };
const schema = { type: 'object' };

/** What a request may name by the hundred thousand, with the parameter that its refusal has. */
const lists: readonly (readonly [what: string, parse: Parse, request: (count: number) => object, param: string])[] = [
  [
    'ids of files and the like',
    parseChat,
    (count) => ({ messages: [{ ...user, file_ids: listOf(count, (index) => `file_${index}`) }] }),
    'messages[0].file_ids[10000]',
  ],
  [
    'item references',
    parseResponse,
    (count) => ({ input: listOf(count, (index) => ({ type: 'item_reference', id: `msg_${index}` })) }),
    'input',
  ],
  [
    'tools in items',
    parseResponse,
    (count) => ({ input: [{ type: 'tools', tools: listOf(count, (index) => ({ type: `tool_${index}` })) }] }),
    'input',
  ],
  [
    'tools with long names',
    parseMessages,
    (count) => ({
      max_tokens: 9,
      messages: [user],
      tools: listOf(count, (index) => ({ name: `${index}_`.padEnd(80, 'x'), input_schema: schema })),
    }),
    'tools',
  ],
];

describe('lists of what a request names, which the event loop gets from the thread that parses it', () => {
  for (const [what, parse, request, param] of lists) {
    it(`a request is refused that names more than 10,000 ${what}`, () => {
      const bodyOf = (count: number): Buffer => Buffer.from(JSON.stringify({ model: 'm', ...request(count) }));
      assert.equal(parse(bodyOf(few)).model, 'm');
      const message = `Too many ${what}: at most 10000 are accepted.`;
      assert.throws(() => parse(bodyOf(many)), { code: 'invalid_request_error', message, param });
    });
  }

  it('a body with more than a thousand fields is refused', () => {
    const bodyOf = (count: number): Buffer => {
      const fields = Object.fromEntries(listOf(count, (index) => [`field_${index}`, 1]));
      return Buffer.from(JSON.stringify({ ...fields, model: 'm', messages: [user] }));
    };
    assert.equal(parseChat(bodyOf(998)).model, 'm');
    const message = 'We could not parse the JSON body of your request: it has more than 1000 fields.';
    assert.throws(() => parseChat(bodyOf(999)), { code: 'invalid_request_error', message });
  });
});
