import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import fc from 'fast-check';
import { createBedrock } from '../../../workers/vendors/bedrock/bedrock.ts';
import { callOf, collect, sendJson } from '../contracts/fixture-vendor.ts';
import { VendorBench } from '../contracts/vendor-bench.ts';
import { answerOf, signature, text, toJson } from '../recorded/recorded-bedrock.ts';

type Fields = Record<string, unknown>;

const apiKey = 'ABSKQmVkcm9ja0FQSUtleS10ZXN0LTAxMjM0NTY3ODk=';
const claude = 'us.anthropic.claude-opus-4-6-v1';
const nova = 'us.amazon.nova-lite-v1:0';
const profile = 'arn:aws:bedrock:us-east-1:123456789012:application-inference-profile/abc';
const automatic = { addsCacheBreakpoints: true, hasCachePrices: true } as const;

const point = { cachePoint: { type: 'default' } };
const said = (words: string): Fields => ({ type: 'text', text: words });
const user = (content: unknown): Fields => ({ role: 'user', content });
const assistant = (content: unknown, more: Fields = {}): Fields => ({ role: 'assistant', content, ...more });
const tool = (name: string): Fields => ({ type: 'function', function: { name } });
const spec = (name: string): Fields => ({
  toolSpec: { name, inputSchema: { json: { type: 'object', properties: {} } } },
});
const document = (type: string): Fields => ({
  type: 'file',
  file: { file_data: `data:${type};base64,SGVsbG8=`, filename: 'a' },
});

describe("the cache points of Claude's prompt cache at Bedrock", () => {
  const bench = new VendorBench((baseUrl) => createBedrock({ name: 'bedrock', baseUrl, apiKey }));
  before(() => bench.server.answer((response) => sendJson(response, 200, toJson(answerOf([text('Hi')])))));

  /** The text of what Bedrock is sent. */
  async function sentTextFor(chat: Fields, { model = claude, ...wants }: Fields & { model?: string }): Promise<string> {
    await bench.vendor.chat(callOf({ model, stream: false, request: JSON.stringify(chat), ...wants }), collect());
    return bench.posts.at(-1)?.body ?? '';
  }
  const sentFor = async (chat: Fields, wants: Fields & { model?: string } = automatic): Promise<Fields> =>
    JSON.parse(await sentTextFor(chat, wants)) as Fields;

  const conversation = {
    tools: [tool('f'), tool('g')],
    tool_choice: 'required',
    messages: [
      { role: 'system', content: [said('Be brief.'), said('Be kind.')] },
      ...[user('Hello!'), assistant('Hi!'), user([said('One'), said('Two'), said(' ')]), assistant('Hi!')],
      user('More!'),
    ],
    max_tokens: 9,
    temperature: 0.5,
  };

  it('a chat of a key with automatic breakpoints has points behind its last tool, its system prompt and the turn before the newest', async () => {
    const { system, messages, toolConfig } = await sentFor(conversation);
    assert.deepEqual(toolConfig, { tools: [spec('f'), spec('g'), point], toolChoice: { any: {} } });
    assert.deepEqual(system, [{ text: 'Be brief.' }, { text: 'Be kind.' }, point]);
    assert.deepEqual(messages, [
      { role: 'user', content: [{ text: 'Hello!' }] },
      { role: 'assistant', content: [{ text: 'Hi!' }] },
      { role: 'user', content: [{ text: 'One' }, { text: 'Two' }, point] },
      { role: 'assistant', content: [{ text: 'Hi!' }] },
      { role: 'user', content: [{ text: 'More!' }] },
    ]);
  });

  it('a result of a tool after signed thinking has a point behind it, outside of the result, and the thinking none', async () => {
    const thinking = { thinking_blocks: [{ type: 'thinking', thinking: 'Hm.', signature }] };
    const calls = { tool_calls: [{ id: 'c1', type: 'function', function: { name: 'f', arguments: '{}' } }] };
    const result = { role: 'tool', tool_call_id: 'c1', content: 'done' };
    const turns = [user('Hello!'), assistant(null, { ...thinking, ...calls }), result, assistant('Hi!'), user('More!')];
    const { messages } = await sentFor({ tools: [tool('f')], messages: turns });
    const [, thought, results] = messages as Fields[];
    assert.ok(!JSON.stringify(thought).includes('cachePoint'));
    const content = [{ toolResult: { toolUseId: 'c1', content: [{ text: 'done' }] } }, point];
    assert.deepEqual(results, { role: 'user', content });
  });

  it('a chat of one turn without tools and system prompt has no point', async () => {
    assert.ok(!(await sentTextFor({ messages: [user('Hello!')] }, automatic)).includes('cachePoint'));
  });

  for (const [why, wants] of [
    ['its key does not say so', { hasCachePrices: true }],
    ['the catalogue has no prices of its cache', { addsCacheBreakpoints: true, hasCachePrices: false }],
    ["it is not known whether the catalogue has prices of its model's cache", { addsCacheBreakpoints: true }],
    ['the model is not of Claude', { ...automatic, model: nova }],
    ['the name of its profile does not tell the model', { ...automatic, model: profile }],
  ] as const) {
    it(`a chat has no point where ${why}`, async () => {
      const { tool_choice: _forced, ...chat } = conversation;
      assert.ok(!(await sentTextFor(chat, wants)).includes('cachePoint'));
    });
  }

  it('no point stands right behind a document that is not a PDF', async () => {
    const placesIn = async (content: Fields[]): Promise<string[]> => {
      const { messages } = await sentFor({ messages: [user(content), assistant('Hi!'), user('More!')] });
      const blocks = (messages as { content: Fields[] }[])[0]?.content ?? [];
      return blocks.flatMap((block) => Object.keys(block));
    };
    const [plain, pdf] = [document('text/plain'), document('application/pdf')];
    assert.deepEqual(await placesIn([said('Read!'), pdf]), ['text', 'document', 'cachePoint']);
    assert.deepEqual(await placesIn([said('Read!'), plain, plain]), ['text', 'cachePoint', 'document', 'document']);
    assert.deepEqual(await placesIn([plain, said('Read!')]), ['document', 'text', 'cachePoint']);
    assert.deepEqual(await placesIn([plain]), ['document', 'text', 'cachePoint']);
  });

  it("a caller's mark on a document that is not a PDF is left out, and one on a PDF becomes a point", async () => {
    const mark = { cache_control: { type: 'ephemeral' } };
    const sentWith = (type: string): Promise<string> =>
      sentTextFor({ messages: [user([{ ...document(type), ...mark }, said('Read!')])] }, {});
    assert.ok(!(await sentWith('text/plain')).includes('cachePoint'));
    assert.ok((await sentWith('application/pdf')).includes('cachePoint'));
  });

  it('no chat gets more than three points, each behind something, and nothing but points is added', async () => {
    const words = fc.constantFrom('Hello!', ' ', 'More', '');
    const part = fc.oneof(words.map(said), fc.constant(document('text/plain')));
    const message = fc.oneof(
      fc.record({ role: fc.constantFrom('system', 'user', 'assistant', 'developer'), content: words }),
      fc.record({ role: fc.constant('user'), content: fc.array(part, { minLength: 1, maxLength: 3 }) }),
      fc.record({ role: fc.constant('tool'), tool_call_id: fc.constant('c1'), content: words }),
    );
    const chats = fc.record({
      messages: fc.array(message, { minLength: 1, maxLength: 10 }),
      tools: fc.array(fc.constantFrom(tool('f'), tool('g')), { maxLength: 3 }),
    });
    const written = JSON.stringify(point);
    await fc.assert(
      fc.asyncProperty(chats, async (chat) => {
        const sent = await sentTextFor(chat, automatic);
        assert.ok(sent.split(written).length - 1 <= 3);
        assert.ok(!sent.includes(`[${written}`), 'a point behind nothing');
        assert.equal(sent.replaceAll(`,${written}`, ''), await sentTextFor(chat, {}));
      }),
      { numRuns: 60 },
    );
  });
});
