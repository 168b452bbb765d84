import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { chat, input_schema, message, turns } from '../../support/breakpoint-requests.ts';
import { TestGateway } from '../../support/gateway.ts';
import { makeApiKey } from '../../support/make-api-key.ts';
import { type FixtureVendor, sendJson, startFixtureVendor } from '../../vendors/contracts/fixture-vendor.ts';
import { answerOf, eventStream, eventsOf, text, toJson, toWire } from '../../vendors/recorded/recorded-bedrock.ts';

type Fields = Record<string, unknown>;

const mark = { cache_control: { type: 'ephemeral' } };
const point = { cachePoint: { type: 'default' } };
const model = 'claude-opus-4-6';
const answer = answerOf([text('Hi')]);
const response = { instructions: 'Be brief.', input: turns };
const marked = [{ role: 'user', content: [{ type: 'text', text: 'One', ...mark }] }, ...turns.slice(1)];

describe('a key with automatic breakpoints of the prompt cache, with Claude at Bedrock', () => {
  let gateway: TestGateway;
  let vendor: FixtureVendor;
  let automatic: string;
  before(async () => {
    vendor = await startFixtureVendor();
    vendor.answer((reply, { url }) => {
      if (url?.endsWith('/converse')) sendJson(reply, 200, toJson(answer));
      else {
        reply.writeHead(200, { 'content-type': eventStream });
        reply.end(toWire(eventsOf(answer)));
      }
    });
    const settings = { BEDROCK_API_KEY: 'ABSKQmVkcm9ja0FQSUtleQ==', BEDROCK_BASE_URL: vendor.baseUrl };
    gateway = await TestGateway.start({ settings });
    automatic = await makeApiKey(gateway, { cacheBreakpoints: 'automatic' });
  });
  after(async () => {
    await gateway.stop();
    await vendor.close();
  });

  async function post(path: string, request: Fields, key: string): Promise<Response> {
    const reply = await gateway.fetch(path, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}` },
      body: JSON.stringify({ model, ...request }),
    });
    assert.equal(reply.status, 200, await reply.clone().text());
    return reply;
  }

  /** The text that Bedrock is sent for a request. */
  async function sentFor(path: string, request: Fields, key: string): Promise<string> {
    await (await post(path, request, key)).text();
    return vendor.requests.at(-1)?.body ?? '';
  }
  const pointsIn = (sent: string): number => sent.split('"cachePoint"').length - 1;

  for (const [path, request] of [
    ['/v1/messages', message],
    ['/v1/chat/completions', chat],
    ['/v1/chat/completions', { ...chat, stream: true }],
  ] as const) {
    const held = 'stream' in request ? 'streamed' : 'held';
    it(`POST ${path}, ${held}, reaches Bedrock with points behind tools, system prompt and the turn before the newest`, async () => {
      const { system, messages, toolConfig } = JSON.parse(await sentFor(path, request, automatic)) as Fields;
      assert.deepEqual(system, [{ text: 'Be brief.' }, point]);
      assert.deepEqual((toolConfig as Fields).tools, [
        { toolSpec: { name: 'f', inputSchema: { json: input_schema } } },
        point,
      ]);
      assert.deepEqual(messages, [
        { role: 'user', content: [{ text: 'One' }, point] },
        { role: 'assistant', content: [{ text: 'Hi!' }] },
        { role: 'user', content: [{ text: 'Two' }] },
      ]);
    });

    it(`POST ${path}, ${held}, reaches Bedrock as ever, without points, by a key that does not say so`, async () => {
      const sent = await sentFor(path, request, gateway.apiKey);
      assert.equal(pointsIn(sent), 0);
      const pointed = await sentFor(path, request, automatic);
      assert.equal(pointed.replaceAll(`,${JSON.stringify(point)}`, ''), sent);
    });
  }

  it('POST /v1/responses reaches Bedrock with points behind system prompt and the turn before the newest', async () => {
    assert.equal(pointsIn(await sentFor('/v1/responses', response, automatic)), 2);
  });

  it("a request keeps only its caller's mark, which becomes a point", async () => {
    for (const [path, request] of [
      ['/v1/messages', { ...message, messages: marked }],
      ['/v1/chat/completions', { ...chat, messages: marked }],
    ] as const) {
      const sent = await sentFor(path, request, automatic);
      assert.equal(pointsIn(sent), 1);
      assert.equal(sent, await sentFor(path, request, gateway.apiKey));
    }
  });

  for (const [whose, id] of [
    ['of a Claude that the catalogue does not have', 'bedrock/anthropic.claude-3-haiku-20240307-v1:0'],
    ["of another maker, whose cache's prices it has", 'bedrock/amazon.nova-pro-v1:0'],
  ] as const) {
    it(`a model ${whose} gets no points`, async () => {
      const sent = await sentFor('/v1/chat/completions', { ...chat, model: id }, automatic);
      assert.equal(pointsIn(sent), 0);
    });
  }

  it('what Bedrock reads from its cache and writes to it is charged at the prices of either', async () => {
    const reply = await post('/v1/chat/completions', chat, automatic);
    await reply.text();
    // 25 plain at $5 a million, 1,875 read at $0.50, 40 written at $6.25, 60 for an hour at $10, and 300 of output at $25.
    assert.equal(reply.headers.get('x-sluice-cost'), '0.0094125');
  });
});
