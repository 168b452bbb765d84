import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { toMessageRequest } from '../../../workers/vendors/anthropic/request.ts';

type Fields = Record<string, unknown>;

const mark = { cache_control: { type: 'ephemeral' } };
const said = (text: string): Fields => ({ type: 'text', text });
const tool = (name: string, more: Fields = {}): Fields => ({ type: 'function', function: { name }, ...more });
const call = (id: string, more: Fields = {}): Fields => ({
  ...{ id, type: 'function', function: { name: 'f', arguments: '{}' } },
  ...more,
});
const [hello, more] = [
  { role: 'user', content: 'Hello!' },
  { role: 'user', content: 'More!' },
];
const hi = { role: 'assistant', content: 'Hi!' };

function sentFor(chat: Fields, adds = true): Fields {
  const request = JSON.stringify(chat);
  const added = adds ? ({ addsCacheBreakpoints: true } as const) : {};
  return JSON.parse(toMessageRequest({ model: 'claude-opus-5-5', stream: false, request, ...added })) as Fields;
}

function marksIn(sent: Fields): number {
  return JSON.stringify(sent).split('"cache_control"').length - 1;
}

describe("the breakpoints of Anthropic's prompt cache", () => {
  const conversation = {
    tools: [tool('f'), tool('g')],
    messages: [
      { role: 'system', content: [said('Be brief.'), said('Be kind.')] },
      ...[hello, hi, { role: 'user', content: [said('One'), said('Two')] }, hi, more],
    ],
  };

  it('a chat of a key with automatic breakpoints marks its last tool, its system prompt and the user message before the newest', () => {
    const sent = sentFor(conversation);
    const schema = { type: 'object', properties: {} };
    assert.deepEqual(sent.tools, [
      { name: 'f', input_schema: schema },
      { name: 'g', input_schema: schema, ...mark },
    ]);
    assert.deepEqual(sent.system, [said('Be brief.'), { ...said('Be kind.'), ...mark }]);
    const assistant = { role: 'assistant', content: [said('Hi!')] };
    assert.deepEqual(sent.messages, [
      { role: 'user', content: [said('Hello!')] },
      assistant,
      { role: 'user', content: [said('One'), { ...said('Two'), ...mark }] },
      assistant,
      { role: 'user', content: [said('More!')] },
    ]);
  });

  it('results of tools are a turn of the user, whose last result is marked once a newer turn follows', () => {
    const result = { role: 'tool', tool_call_id: 'c1', content: 'done' };
    const calling = { role: 'assistant', content: null, tool_calls: [call('c1')] };
    const sent = sentFor({ messages: [hello, calling, result, hi, more] });
    const [, , results] = sent.messages as Fields[];
    const block = { type: 'tool_result', tool_use_id: 'c1', content: [said('done')], ...mark };
    assert.deepEqual(results, { role: 'user', content: [block] });
    assert.equal(marksIn(sent), 1);
  });

  it('a chat of one turn without tools and system prompt gets no breakpoint', () => {
    assert.equal(marksIn(sentFor({ messages: [hello] })), 0);
    assert.equal(marksIn(sentFor({ messages: [hello, more] })), 0);
  });

  it('a chat gets no breakpoint where its key does not say so', () => {
    assert.equal(marksIn(sentFor(conversation, false)), 0);
  });

  it('no chat gets more than three breakpoints, and nothing but breakpoints is added', () => {
    const text = fc.string({ minLength: 1 });
    const message = fc.oneof(
      fc.record({ role: fc.constantFrom('system', 'user', 'assistant', 'developer'), content: text }),
      fc.record({ role: fc.constant('user'), content: fc.array(text.map(said), { minLength: 1, maxLength: 3 }) }),
      fc.record({ role: fc.constant('tool'), tool_call_id: fc.constant('c1'), content: text }),
    );
    const chats = fc.record({
      messages: fc.array(message, { minLength: 1, maxLength: 12 }),
      tools: fc.array(fc.constantFrom(tool('f'), tool('g')), { maxLength: 3 }),
    });
    fc.assert(
      fc.property(chats, (chat) => {
        const sent = sentFor(chat);
        assert.ok(marksIn(sent) <= 3);
        const unmarked = JSON.stringify(sent).replaceAll(',"cache_control":{"type":"ephemeral"}', '');
        assert.deepEqual(JSON.parse(unmarked), sentFor(chat, false));
      }),
    );
  });
});
