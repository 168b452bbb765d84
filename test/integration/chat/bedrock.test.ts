import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { TestGateway } from '../../support/gateway.ts';
import { type FixtureVendor, sendJson, startFixtureVendor } from '../../vendors/contracts/fixture-vendor.ts';
import { checkSignature } from '../../vendors/contracts/signature-version-4.ts';
import {
  type Answer,
  chatUsage,
  errorBody,
  eventsOf,
  exceptionMessage,
  recorded,
  toJson,
  toWire,
} from '../../vendors/recorded/recorded-bedrock.ts';

const secretAccessKey = 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY';
const messages = [{ role: 'user' as const, content: 'Hello!' }];
const answer = recorded['tool calls in fragments'] as Answer;

describe('a gateway with Bedrock alone', () => {
  let gateway: TestGateway;
  let vendor: FixtureVendor;
  before(async () => {
    vendor = await startFixtureVendor();
    const settings = {
      BEDROCK_API_KEY: `AKIAIOSFODNN7EXAMPLE:${secretAccessKey}`,
      BEDROCK_BASE_URL: vendor.baseUrl,
    };
    gateway = await TestGateway.start({ settings });
    vendor.answer((response, { url }) => {
      if (url?.endsWith('/converse')) sendJson(response, 200, toJson(answer));
      else {
        response.writeHead(200, { 'content-type': 'application/vnd.amazon.eventstream' });
        response.end(toWire(eventsOf(answer)));
      }
    });
  });
  after(async () => {
    await gateway.stop();
    await vendor.close();
  });

  const lastRequest = () => vendor.requests.at(-1) ?? assert.fail();

  test('GET /v1/models lists the models of Bedrock, those of other makers under their own names', async () => {
    const ids = (await gateway.client().models.list()).data.map(({ id }) => id);
    for (const id of ['claude-opus-4-8', 'bedrock/amazon.nova-pro-v1:0', 'openai/gpt-oss-120b']) {
      assert.ok(ids.includes(id), id);
    }
    assert.ok(ids.length > 60);
  });

  test('POST /v1/chat/completions signs Bedrock requests, held and streamed, and names ignored parameters', async () => {
    const request = { model: 'claude-opus-4-8', messages, seed: 7 };
    const client = gateway.client();
    const { data: held, response } = await client.chat.completions.create(request).withResponse();
    assert.equal(response.headers.get('x-sluice-ignored'), 'seed');
    assert.equal(held.choices[0]?.finish_reason, 'tool_calls');
    const calls = held.choices[0]?.message.tool_calls?.map((call) => call.type === 'function' && call.function.name);
    assert.deepEqual(calls, ['get_weather', 'get_time']);
    assert.deepEqual({ ...held.usage }, chatUsage);
    assert.equal(lastRequest().url, '/v1/model/global.anthropic.claude-opus-4-8/converse');
    assert.equal(checkSignature(lastRequest(), secretAccessKey).service, 'bedrock');
    const streamed = await client.chat.completions.stream(request).finalChatCompletion();
    assert.deepEqual(streamed.choices[0]?.message.tool_calls, held.choices[0]?.message.tool_calls);
    assert.equal(lastRequest().url, '/v1/model/global.anthropic.claude-opus-4-8/converse-stream');
  });

  test('POST /v1/chat/completions passes any bedrock/… id on, and refuses parameters that Converse lacks', async () => {
    const model = 'bedrock/eu.amazon.nova-micro-v1:0';
    await gateway.client().chat.completions.create({ model, messages });
    assert.equal(lastRequest().url, '/v1/model/eu.amazon.nova-micro-v1%3A0/converse');
    const asked = vendor.requests.length;
    const refused = gateway.client().chat.completions.create({ model, messages, n: 2 });
    await assert.rejects(refused, { status: 400, param: 'n' });
    assert.equal(vendor.requests.length, asked);
  });

  test('POST /v1/chat/completions is retried when Bedrock throttles the stream before any output', async () => {
    let asked = 0;
    vendor.answer((response) => {
      asked += 1;
      response.writeHead(200, { 'content-type': 'application/vnd.amazon.eventstream' });
      const throttled = exceptionMessage('throttlingException', errorBody('Slow down.'));
      response.end(asked === 1 ? throttled : toWire(eventsOf(recorded['plain text'] as Answer)));
    });
    const stream = gateway.client().chat.completions.stream({ model: 'claude-opus-4-8', messages });
    assert.equal((await stream.finalMessage()).content, 'Hello! How are you today?');
    assert.equal(asked, 2);
  });
});
