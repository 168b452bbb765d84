import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type OpenAI from 'openai';
import { TestGateway } from '../../support/gateway.ts';

describe('conversations of responses that change their model', () => {
  let gateway: TestGateway;
  let client: OpenAI;
  before(async () => {
    gateway = await TestGateway.start();
    client = gateway.client();
  });
  after(() => gateway.stop());

  const create = async (model: string, input: string, previous?: string) =>
    await client.responses.create({ model, input, previous_response_id: previous ?? null });

  it('a conversation of several turns over chats continues at a vendor with the Responses API', async () => {
    const one = await create('sandbox-reasoning', 'Reply with exactly: one');
    assert.deepEqual(
      one.output.map(({ type }) => type),
      ['reasoning', 'message'],
    );
    const two = await create('sandbox-reasoning', 'Reply with exactly: two', one.id);
    const three = await create('sandbox-responses', 'Reply with exactly: three', two.id);
    assert.equal(three.output_text, 'three');
    const back = await create('sandbox-reasoning', 'Reply with exactly: four', three.id);
    assert.equal(back.output_text, 'four');
    const again = await create('sandbox-responses', 'Reply with exactly: five', back.id);
    assert.equal(again.output_text, 'five');
  });

  it('input items of every type are sent again by references to the ids under which they are listed', async () => {
    const tools: OpenAI.Responses.Tool[] = [{ type: 'custom', name: 'note' }];
    const one = await client.responses.create({
      ...{ model: 'sandbox-responses', tools },
      input: [
        { role: 'user', content: 'Note this.' },
        { type: 'custom_tool_call', call_id: 'call_1', name: 'note', input: 'this' },
        { type: 'custom_tool_call_output', call_id: 'call_1', output: 'noted' },
      ],
    });
    const { data } = await client.responses.inputItems.list(one.id, { order: 'asc' });
    assert.equal(data.length, 3);
    const references = data.map(({ id }) => ({ type: 'item_reference', id: String(id) }) as const);
    const input = [...references, { role: 'user', content: 'Reply with exactly: again' } as const];
    const two = await client.responses.create({ model: 'sandbox-responses', tools, input });
    assert.equal(two.output_text, 'again');
  });
});
