import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type OpenAI from 'openai';
import { TestGateway } from '../../support/gateway.ts';
import {
  type FixtureVendor,
  sendJson,
  sendStream,
  startFixtureVendor,
} from '../../vendors/contracts/fixture-vendor.ts';
import { chunk, completion, events, usage } from '../../vendors/recorded/recorded-openai.ts';

type Fields = Record<string, unknown>;
type Response = OpenAI.Responses.Response;

const model = 'kimi-k2.6';
/** As Kimi names its calls: the tool, and which call of the conversation it is. */
const name = 'mcp__the_company_wide_knowledge_base__search_in_all_documents';
const [long, other] = [`functions.${name}:0`, `functions.${name}:1`];
const most = `functions.${'f'.repeat(52)}:0`;
const signed = { extra_content: { google: { thought_signature: 'CsUBAdHtim9x' } } };
const tools = [{ type: 'function', name, parameters: { type: 'object' }, strict: false }] as const;

describe('ids of calls that are longer than the Responses API takes', () => {
  let gateway: TestGateway;
  let vendor: FixtureVendor;
  before(async () => {
    vendor = await startFixtureVendor();
    gateway = await TestGateway.start({
      settings: { MOONSHOT_API_KEY: 'sk-test-0123456789abcdef', MOONSHOT_BASE_URL: vendor.baseUrl },
    });
  });
  after(async () => {
    await gateway.stop();
    await vendor.close();
  });

  const answerWith = (ids: readonly string[]): void => {
    const calls = ids.map((id, index) => ({
      ...{ id, index, type: 'function', function: { name, arguments: '{}' } },
      ...signed,
    }));
    const message = { role: 'assistant', content: null, tool_calls: calls.map(({ index: _, ...call }) => call) };
    const choices = [{ index: 0, message, finish_reason: 'tool_calls' }];
    vendor.answer((response, { body }) => {
      if (!body.includes('"stream":true')) {
        return sendJson(response, 200, JSON.stringify({ ...completion, usage, choices }));
      }
      const chunks = [chunk([{ delta: { tool_calls: calls } }]), chunk([{ delta: {}, finish_reason: 'tool_calls' }])];
      return sendStream(response, [events(chunks)]);
    });
  };
  const create = async (input: unknown, more: Fields = {}): Promise<Response> =>
    await gateway.client().responses.create({ model, input, tools, ...more } as never);
  const streamed = async (input: unknown): Promise<Response> => {
    const stream = await gateway.client().responses.create({ model, input, tools, stream: true } as never);
    let last: Response | undefined;
    for await (const event of stream as unknown as AsyncIterable<OpenAI.Responses.ResponseStreamEvent>) {
      if (event.type === 'response.completed') last = event.response;
    }
    return last ?? assert.fail('the stream has no end');
  };
  const idsIn = ({ output }: Response): string[] =>
    output.flatMap((item) => (item.type === 'function_call' ? [item.call_id] : []));
  const outputs = (ids: readonly string[]): Fields[] =>
    ids.map((id) => ({ type: 'function_call_output', call_id: id, output: `of ${id}` }));
  /** Ids and signatures of the calls that the vendor was sent last, and their results. */
  const sent = (): { calls: Fields[]; results: Fields[] } => {
    const { messages } = JSON.parse(vendor.requests.at(-1)?.body ?? assert.fail()) as { messages: Fields[] };
    const calls = messages.flatMap(({ tool_calls: each }) => (each ?? []) as Fields[]);
    return {
      calls: calls.map(({ id, extra_content }) => ({ id, extra_content })),
      results: messages.filter(({ role }) => role === 'tool').map(({ tool_call_id: id, content }) => ({ id, content })),
    };
  };

  it('a call with an id over 64 characters has a stand-in, with which its result and its signature come back', async () => {
    for (const ask of [create, streamed]) {
      answerWith([long, other]);
      const first = await ask('Search.');
      const ids = idsIn(first);
      assert.equal(new Set(ids).size, 2);
      for (const id of ids) assert.match(id, /^call_[0-9a-f]{32}$/);
      const expected = {
        calls: ids.map((id) => ({ id, ...signed })),
        results: ids.map((id) => ({ id, content: `of ${id}` })),
      };
      await create(outputs(ids), { previous_response_id: first.id });
      assert.deepEqual(sent(), expected);
      await create([{ role: 'user', content: 'Search.' }, ...first.output, ...outputs(ids)]);
      assert.deepEqual(sent(), expected);
      // The same at each time that it is shown.
      assert.deepEqual(idsIn(await gateway.client().responses.retrieve(first.id)), ids);
    }
  });

  it('an id of 64 characters stays as the vendor gave it', async () => {
    assert.equal(most.length, 64);
    answerWith([most]);
    assert.deepEqual(idsIn(await create('Search.')), [most]);
  });
});
