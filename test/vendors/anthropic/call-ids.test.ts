import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { toMessageRequest } from '../../../workers/vendors/anthropic/request.ts';
import { toConverseRequest } from '../../../workers/vendors/bedrock/request.ts';
import { InlineMedia } from '../../../workers/vendors/support/inline-media.ts';
import { callOf } from '../contracts/fixture-vendor.ts';

type Fields = Record<string, unknown>;

const user: Fields = { role: 'user', content: 'Hi' };
const calling = (...ids: string[]): Fields => ({
  role: 'assistant',
  content: null,
  tool_calls: ids.map((id) => ({ id, type: 'function', function: { name: 'f', arguments: '{}' } })),
});
/** Results say what they are of. */
const result = (id: string, of: string): Fields => ({ role: 'tool', tool_call_id: id, content: of });

/** The ids of the calls in each turn, and what the results say under each id. */
function sentFor(messages: readonly Fields[]): (readonly string[] | Readonly<Record<string, string>>)[] {
  const request = JSON.stringify({ messages: [user, ...messages] });
  const sent = JSON.parse(toMessageRequest({ model: 'claude-opus-5-5', stream: false, request }));
  return sent.messages.slice(1).map(({ role, content }: { role: string; content: Fields[] }) => {
    if (role === 'assistant') return content.map(({ id }) => id);
    const results = content.filter(({ type }) => type === 'tool_result');
    return Object.fromEntries(results.map((each) => [each.tool_use_id, (each.content as Fields[])[0]?.text]));
  });
}

describe('ids of calls at Anthropic', () => {
  it('an id that comes again in a later turn gets a number, and so does the result of that call', () => {
    const messages = [
      ...[calling('call_0', 'call_1'), result('call_1', '1b'), result('call_0', '1a')],
      ...[calling('call_0'), result('call_0', '2')],
      ...[user, calling('call_0', 'call_1'), result('call_0', '3a'), result('call_1', '3b')],
    ];
    assert.deepEqual(sentFor(messages), [
      ['call_0', 'call_1'],
      { call_1: '1b', call_0: '1a' },
      ['call_0_1'],
      { call_0_1: '2' },
      ['call_0_2', 'call_1_1'],
      { call_0_2: '3a', call_1_1: '3b' },
    ]);
  });

  it('calls of one turn that have the same id get their results in their order', () => {
    assert.deepEqual(sentFor([calling('a', 'a'), result('a', 'one'), result('a', 'two')]), [
      ['a', 'a_1'],
      { a: 'one', a_1: 'two' },
    ]);
    // Of adjacent messages, too, which Anthropic takes as one turn.
    assert.deepEqual(sentFor([calling('a'), calling('a'), result('a', 'one'), result('a', 'two')]), [
      ['a'],
      ['a_1'],
      { a: 'one', a_1: 'two' },
    ]);
  });

  it('ids that differ only in characters that Anthropic does not take stay apart, and a number meets no given id', () => {
    const messages = [
      ...[calling('f:0', 'f.0', 'f_0_1'), result('f_0_1', 'c'), result('f.0', 'b'), result('f:0', 'a')],
      ...[calling('f.0'), result('f.0', 'd')],
    ];
    assert.deepEqual(sentFor(messages), [
      ['f_0', 'f_0_1', 'f_0_1_1'],
      { f_0_1_1: 'c', f_0_1: 'b', f_0: 'a' },
      ['f_0_2'],
      { f_0_2: 'd' },
    ]);
  });

  it('a result of no call keeps its id, and one more for a call has the id of that call', () => {
    assert.deepEqual(sentFor([calling('a'), result('b:1', 'odd')]), [['a'], { b_1: 'odd' }]);
    const twice = [calling('a'), result('a', '1'), calling('a'), result('a', '2'), result('a', 'again')];
    assert.deepEqual(sentFor(twice).at(-1), { a_1: 'again' });
  });

  it('whatever ids turns have, no two calls have the same, and each result follows its own call', () => {
    const ids = fc.array(fc.constantFrom('a', 'a_1', 'a:1', 'a_1_1', 'a.1.1', 'b'), { minLength: 1, maxLength: 4 });
    const turn = fc.record({ ids, reversed: fc.boolean() });
    fc.assert(
      fc.property(fc.array(turn, { maxLength: 6 }), (turns) => {
        const messages = turns.flatMap(({ ids, reversed }, index) => {
          const given = ids.map((id, at) =>
            result(id, `${index}.${ids.slice(0, at).filter((each) => each === id).length}.${id}`),
          );
          const isOrdered = new Set(ids).size < ids.length || !reversed;
          return [calling(...ids), ...(isOrdered ? given : given.toReversed())];
        });
        const sent = sentFor(messages);
        const calls = sent.filter((each): each is readonly string[] => Array.isArray(each));
        assert.equal(new Set(calls.flat()).size, calls.flat().length);
        for (const [index, { ids }] of turns.entries()) {
          const results = sent[2 * index + 1] as Readonly<Record<string, string>>;
          const expected = ids.map(
            (id, at) => `${index}.${ids.slice(0, at).filter((each) => each === id).length}.${id}`,
          );
          assert.deepEqual(
            calls[index]?.map((id) => results[id]),
            expected,
          );
        }
      }),
    );
  });

  it('a long history of one id takes seconds of CPU at most', () => {
    const before = process.cpuUsage();
    const turns = Array.from({ length: 20_000 }, () => [calling('call_0'), result('call_0', 'x')]).flat();
    const sent = sentFor(turns);
    assert.deepEqual(sent.at(-1), { call_0_19999: 'x' });
    // Its own work, which a busy machine does not add to: looked up turn by turn it takes three times as long.
    assert.ok(process.cpuUsage(before).user < 5_000_000);
  });

  it('Bedrock, which refuses an id twice in a message, gets the same ids', async () => {
    const messages = [user, calling('a', 'a'), result('a', 'one'), result('a', 'two')];
    const tools = [{ type: 'function', function: { name: 'f' } }];
    const request = JSON.stringify({ messages, tools });
    const call = callOf({ model: 'us.anthropic.claude-opus-4-6-v1', stream: false, request });
    const download = () => assert.fail('nothing is linked');
    const sent = JSON.parse(await toConverseRequest(call, new InlineMedia(call, download)));
    assert.deepEqual(
      sent.messages
        .slice(1)
        .flatMap(({ content }: { content: Record<string, Fields>[] }) =>
          content.map(({ toolUse, toolResult }) => (toolUse ?? toolResult)?.toolUseId),
        ),
      ['a', 'a_1', 'a', 'a_1'],
    );
  });

  it('a call of a tool that there is not, by a name that Anthropic and Bedrock refuse, has another name there', async () => {
    const call = (name: string): Fields => ({
      id: `of_${name.length}`,
      type: 'function',
      function: { name, arguments: '{}' },
    });
    const named = ['functions.search', '', 'search<|channel|>commentary', 'look_up', 'x'.repeat(128)];
    const request = JSON.stringify({
      messages: [user, { role: 'assistant', content: null, tool_calls: named.map(call) }],
    });
    const sent = JSON.parse(toMessageRequest({ model: 'claude-opus-5-5', stream: false, request }));
    const names: string[] = sent.messages[1].content.map(({ name }: Fields) => name);
    for (const name of names) assert.match(name, /^[a-zA-Z0-9_-]{1,128}$/);
    assert.equal(new Set(names).size, named.length);
    assert.deepEqual(names.slice(3), named.slice(3));
  });
});
