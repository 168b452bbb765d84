import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { parseMessages } from '../../../api/endpoints/messages/parse-messages.ts';
import { parseResponse } from '../../../api/endpoints/responses/parse-response.ts';
import { textOf } from '../../../api/pipeline/request-text.ts';
import { findVendorRow } from '../../../shared/vendors/vendors.ts';
import { executeChat } from '../../../workers/execute/execute.ts';
import { adaptRequest } from '../../../workers/vendors/openai/chat-request.ts';
import { createVendor } from '../../../workers/vendors/registry.ts';
import type { Vendor } from '../../../workers/vendors/vendor.ts';
import { madeUpModel } from '../../support/routed-model.ts';
import { vendorSettings } from '../../support/vendor-settings.ts';
import { callOf, collect, type FixtureVendor, startFixtureVendor } from '../contracts/fixture-vendor.ts';
import { rowAnswer } from '../contracts/row-vendor.ts';

type Fields = Record<string, unknown>;

const apiKey = 'sk-test-0123456789abcdef';
const mistral = findVendorRow('mistral') ?? assert.fail();
const model = 'mistral-small-latest';
const row = madeUpModel({ id: model, capability: 'chat' }, 'mistral');
const url = 'https://example.com/a.png';
const [one, other] = ['D681PevKs', 'D681PevKt'];

describe("a message of the user behind a tool's result at Mistral", () => {
  let server: FixtureVendor;
  let vendor: Vendor;
  before(async () => {
    server = await startFixtureVendor();
    vendor = createVendor('mistral', vendorSettings('mistral', server.baseUrl, apiKey), apiKey);
    // Refuses such an order.
    server.answer(rowAnswer(mistral, { role: 'assistant', content: 'Hello.' }));
  });
  after(async () => {
    await vendor.close();
    await server.close();
  });

  /** The roles of the messages that Mistral is sent, an assistant's with what it says. */
  async function sentFor(endpoint: string, request: string): Promise<unknown[]> {
    const call = callOf({ model, stream: false, request });
    await executeChat({ vendor, row, endpoint, keep: false, call, sink: collect() });
    const { messages } = JSON.parse(server.requests.at(-1)?.body ?? '') as { messages: Fields[] };
    return messages.map(({ role, content }) => (role === 'assistant' && content ? content : role));
  }

  it('a chat has a word of the assistant between them, and none elsewhere', async () => {
    const call = (id: string): Fields => ({ id, type: 'function', function: { name: 'f', arguments: '{}' } });
    const result = (id: string): Fields => ({ role: 'tool', tool_call_id: id, content: 'done' });
    const said = (role: string, content: string): Fields => ({ role, content });
    const calling = { role: 'assistant', content: null, tool_calls: [call(one), call(other)] };
    const turn = [said('user', 'Go.'), calling, result(one), result(other)];
    const chatOf = (messages: Fields[]): string => JSON.stringify({ messages });
    assert.deepEqual(
      await sentFor('chat', chatOf([...turn, ...turn, said('user', 'And now?'), said('user', 'Well?')])),
      [
        ...['user', 'assistant', 'tool', 'tool', 'OK.'],
        ...['user', 'assistant', 'tool', 'tool', 'OK.', 'user', 'user'],
      ],
    );
    assert.deepEqual(await sentFor('chat', chatOf([...turn, said('assistant', 'Yes.'), said('user', 'Now?')])), [
      ...['user', 'assistant', 'tool', 'tool', 'Yes.', 'user'],
    ]);
    assert.deepEqual(await sentFor('chat', chatOf(turn)), ['user', 'assistant', 'tool', 'tool']);
  });

  it('text beside a result of a Messages request, and images of it, work', async () => {
    const body = {
      ...{ model, max_tokens: 100, tools: [{ name: 'f', input_schema: { type: 'object' } }] },
      messages: [
        { role: 'user', content: 'Go.' },
        { role: 'assistant', content: [{ type: 'tool_use', id: one, name: 'f', input: {} }] },
        {
          role: 'user',
          content: [
            { type: 'tool_result', tool_use_id: one, content: [{ type: 'image', source: { type: 'url', url } }] },
            { type: 'text', text: 'Well?' },
          ],
        },
      ],
    };
    const { request } = await parseMessages(Buffer.from(JSON.stringify(body)));
    assert.deepEqual(await sentFor('messages', textOf(request)), ['user', 'assistant', 'tool', 'OK.', 'user']);
  });

  it("images that a tool puts out, in a response's input, work", async () => {
    const input = [
      { role: 'user', content: 'Go.' },
      { type: 'function_call', call_id: one, name: 'f', arguments: '{}' },
      { type: 'function_call_output', call_id: one, output: [{ type: 'input_image', image_url: url }] },
    ];
    const tools = [{ type: 'function', name: 'f', parameters: { type: 'object' } }];
    const { request } = parseResponse(Buffer.from(JSON.stringify({ model, input, tools })));
    assert.deepEqual(await sentFor('responses', textOf(request)), ['user', 'assistant', 'tool', 'OK.', 'user']);
  });

  it('the deviation works without any other', () => {
    const messages = ['user', 'tool', 'user'].map((role) => ({ role, ...(role === 'tool' && { tool_call_id: one }) }));
    const adapted = adaptRequest({ userAfterTool: false })?.(JSON.stringify({ messages }), 'm') ?? assert.fail();
    const roles = JSON.parse(adapted).messages.map(({ role }: Fields) => role);
    assert.deepEqual(roles, ['user', 'tool', 'assistant', 'user']);
  });
});
