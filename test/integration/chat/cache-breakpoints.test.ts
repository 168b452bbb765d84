import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { chat, input_schema, message, turns } from '../../support/breakpoint-requests.ts';
import { TestGateway } from '../../support/gateway.ts';
import { makeApiKey } from '../../support/make-api-key.ts';
import { ResponseSocketClient } from '../../support/response-socket-client.ts';
import { type FixtureVendor, sendJson, startFixtureVendor } from '../../vendors/contracts/fixture-vendor.ts';
import { messageOf, text } from '../../vendors/recorded/recorded-anthropic.ts';

type Fields = Record<string, unknown>;

const mark = { cache_control: { type: 'ephemeral' } };
const model = 'claude-opus-4-6';
const said = (words: string): Fields => ({ type: 'text', text: words });
const thought = { type: 'thinking', thinking: 'Hm.', signature: 'EqQ=', ...mark };
const search = { type: 'search_result', source: 'a', title: 'b', content: [{ ...said('Three'), ...mark }] };
/** Messages with a mark that has no place in the chat made from them. */
const losing: readonly (readonly [place: string, request: Fields])[] = [
  [
    'a thought',
    { ...message, messages: [...turns, { role: 'assistant', content: [thought, said('Three')] }, ...turns.slice(2)] },
  ],
  ['a part of a search result', { ...message, messages: [...turns, { role: 'user', content: [search] }] }],
  [
    'a deferred tool',
    { ...message, tools: [...message.tools, { name: 'g', input_schema, defer_loading: true, ...mark }] },
  ],
  [
    "one of Anthropic's tools",
    { ...message, tools: [...message.tools, { type: 'bash_20250124', name: 'bash', ...mark }] },
  ],
];

/** Text that makes a body too large for the main thread. */
const long = 'long '.repeat(120_000);
const inputText = (words: string, more: Fields = {}): Fields => ({
  role: 'user',
  content: [{ type: 'input_text', text: words, ...more }],
});

/** Requests with one mark, in bodies that a thread parses. */
const largeBodies: readonly (readonly [path: string, request: Fields])[] = [
  [
    '/v1/chat/completions',
    { ...chat, messages: [...chat.messages, { role: 'user', content: [{ ...said(long), ...mark }] }] },
  ],
  ['/v1/messages', { ...message, messages: [...turns, { role: 'user', content: [{ ...said(long), ...mark }] }] }],
  ['/v1/responses', { instructions: 'Be brief.', input: [...turns, inputText(long, mark)] }],
];

function marksIn(sent: Fields): number {
  return JSON.stringify(sent).split('"cache_control"').length - 1;
}

describe('a key with automatic breakpoints of the prompt cache', () => {
  let gateway: TestGateway;
  let vendor: FixtureVendor;
  let automatic: string;
  before(async () => {
    vendor = await startFixtureVendor();
    vendor.answer((response) => sendJson(response, 200, JSON.stringify(messageOf([text('Hi')]))));
    gateway = await TestGateway.start({ settings: { ANTHROPIC_API_KEY: 'a-key', ANTHROPIC_BASE_URL: vendor.baseUrl } });
    automatic = await makeApiKey(gateway, { cacheBreakpoints: 'automatic' });
  });
  after(async () => {
    await gateway.stop();
    await vendor.close();
  });

  /** What the vendor is sent for a request. */
  async function sentFor(path: string, request: Fields, key: string): Promise<Fields> {
    await answerTo(path, request, key);
    return lastSent();
  }

  function lastSent(): Fields {
    return JSON.parse(vendor.requests.at(-1)?.body ?? '') as Fields;
  }

  async function answerTo(path: string, request: Fields, key: string): Promise<Fields> {
    const reply = await gateway.fetch(path, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}` },
      body: JSON.stringify({ model, ...request }),
    });
    const body = await reply.text();
    assert.equal(reply.status, 200, body);
    return JSON.parse(body) as Fields;
  }

  for (const [path, request] of [
    ['/v1/messages', message],
    ['/v1/chat/completions', chat],
  ] as const) {
    it(`POST ${path} reaches Claude with breakpoints in tools, system prompt and the turn before the newest`, async () => {
      const { system, tools, messages } = await sentFor(path, request, automatic);
      assert.deepEqual(system, [{ ...said('Be brief.'), ...mark }]);
      assert.deepEqual(tools, [{ name: 'f', input_schema, ...mark }]);
      assert.deepEqual(messages, [
        { role: 'user', content: [{ ...said('One'), ...mark }] },
        { role: 'assistant', content: [said('Hi!')] },
        { role: 'user', content: [said('Two')] },
      ]);
    });

    it(`POST ${path} reaches Claude without breakpoints by a key that does not say so`, async () => {
      assert.ok(!JSON.stringify(await sentFor(path, request, gateway.apiKey)).includes('cache_control'));
    });
  }

  for (const [place, request] of losing) {
    it(`POST /v1/messages gets no breakpoints besides its caller's mark on ${place}, which Claude does not see`, async () => {
      const sent = await sentFor('/v1/messages', request, automatic);
      assert.deepEqual(sent, await sentFor('/v1/messages', request, gateway.apiKey));
    });
  }

  it('POST /v1/messages keeps only the marks of its caller, even one inside the result of a tool', async () => {
    const marked = [
      { role: 'user', content: 'One' },
      { role: 'assistant', content: [{ type: 'tool_use', id: 'c1', name: 'f', input: {} }] },
      {
        role: 'user',
        content: [{ type: 'tool_result', tool_use_id: 'c1', content: [{ ...said('done'), ...mark }] }],
      },
    ];
    const sent = await sentFor('/v1/messages', { ...message, messages: marked }, automatic);
    assert.equal(marksIn(sent), 1);
  });

  for (const [path, request] of largeBodies) {
    it(`POST ${path} with a body so large that a thread parses it keeps only the mark of its caller`, async () => {
      assert.equal(marksIn(await sentFor(path, request, automatic)), 1);
    });
  }

  it('a response gets breakpoints where neither it nor the turns that it continues are marked', async () => {
    const request = { instructions: 'Be brief.', input: 'One' };
    const { id } = await answerTo('/v1/responses', request, automatic);
    const sent = await sentFor('/v1/responses', { ...request, previous_response_id: id }, automatic);
    assert.equal(marksIn(sent), 2, JSON.stringify(sent));
  });

  it('a response keeps only the marks in the turns that it continues, or refers to', async () => {
    const request = { instructions: 'Be brief.', input: [inputText('One', mark)] };
    const { id } = await answerTo('/v1/responses', request, automatic);
    const continued = { ...request, input: 'Two', previous_response_id: id };
    assert.equal(marksIn(await sentFor('/v1/responses', continued, automatic)), 1);
    const listed = await gateway.fetch(`/v1/responses/${id}/input_items`, {
      headers: { authorization: `Bearer ${automatic}` },
    });
    const { data } = (await listed.json()) as { data: { id: string }[] };
    const input = [{ type: 'item_reference', id: data[0]?.id }, ...turns.slice(1)];
    assert.equal(marksIn(await sentFor('/v1/responses', { ...request, input }, automatic)), 1);
  });

  it('a response on a socket keeps only the marks in the turns of its connection that it continues', async () => {
    const client = await ResponseSocketClient.open(gateway.url, { key: automatic });
    const request = { model, instructions: 'Be brief.', store: false };
    const marked = await client.turn({ ...request, input: [inputText('One', mark)], generate: false });
    await client.turn({ ...request, input: 'Two', previous_response_id: marked.response.id });
    client.webSocket.terminate();
    await client.closed;
    assert.equal(marksIn(lastSent()), 1);
  });
});
