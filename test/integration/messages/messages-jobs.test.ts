import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, it } from 'node:test';
import { type Anthropic, APIError } from '@anthropic-ai/sdk';
import { anthropicClient, message, textOfMessage } from '../../support/anthropic-client.ts';
import { assertAnthropicError } from '../../support/anthropic-errors.ts';
import { AnthropicEvents } from '../../support/anthropic-types.ts';
import { eventually } from '../../support/eventually.ts';
import { TestGateway } from '../../support/gateway.ts';
import { vendorCalls } from '../../support/vendor-journal.ts';

interface Job {
  readonly id: string;
  readonly status: string;
  readonly endpoint: string;
  readonly result: Anthropic.Message | null;
}

describe('messages as jobs', () => {
  let gateway: TestGateway;
  let client: Anthropic;
  before(async () => {
    gateway = await TestGateway.start();
    client = anthropicClient(gateway);
  });
  after(() => gateway.stop());

  const post = (body: object, headers: Record<string, string>) =>
    gateway.fetch('/v1/messages', { method: 'POST', body: JSON.stringify(body), headers });
  const events = async (id: string, after?: string): Promise<string> => {
    const headers: Record<string, string> = after === undefined ? {} : { 'last-event-id': after };
    const response = await gateway.fetch(`/v1/jobs/${id}/events`, { headers });
    assert.equal(response.status, 200);
    return await response.text();
  };

  for (const stream of [false, true]) {
    it(`POST /v1/messages with respond-async returns 202, and its job gets the message (${stream ? 'streamed' : 'held'})`, async () => {
      const accepted = await post({ ...message('Reply with exactly: later'), stream }, { prefer: 'respond-async' });
      assert.equal(accepted.status, 202);
      const { id } = (await accepted.json()) as Job;
      const job = await eventually(async () => {
        const read = (await (await gateway.fetch(`/v1/jobs/${id}`)).json()) as Job;
        assert.equal(read.status, 'completed');
        return read;
      });
      assert.equal(job.endpoint, 'messages');
      assert.equal(job.result?.id, id.replace('job_', 'msg_'));
      assert.equal(textOfMessage(job.result as Anthropic.Message), 'later');
    });
  }

  it('POST /v1/messages replays an idempotency key, and returns 422 in the Anthropic shape for another body', async () => {
    const headers = { 'idempotency-key': randomUUID() };
    const body = message('Reply with exactly: once', { metadata: { user_id: 'once' } });
    const first = await post(body, headers);
    const second = await post(body, headers);
    assert.equal(second.headers.get('idempotent-replayed'), 'true');
    assert.deepEqual(await second.json(), await first.json());
    assert.equal((await vendorCalls(gateway, 'once')).length, 1);
    await assertAnthropicError(await post(message('Another'), headers), 422, 'invalid_request_error');
  });

  it('a message stream resumes after every event with exactly the rest', async () => {
    const tools = [{ name: 'look_up', input_schema: { type: 'object', properties: { a: { type: 'string' } } } }];
    const request = message('TOOL:look_up {"a":"some longer text to be said"}', {
      ...{ model: 'sandbox-reasoning', stream: true, tools },
    });
    const response = await post(request, { 'idempotency-key': randomUUID() });
    const whole = await response.text();
    const id = response.headers.get('x-request-id') as string;
    const blocks = whole.split('\n\n').slice(0, -1);
    assert.ok(blocks.length > 10);
    assert.match(blocks.at(-1) ?? '', /^event: message_stop\ndata: \{"type":"message_stop"\}\nid: \d+\.\d+$/);
    assert.equal(await events(id), whole);
    for (const [index, block] of blocks.entries()) {
      const position = /^event: \w+\ndata: .*\nid: (\S+)$/.exec(block)?.[1];
      const rest = blocks.slice(index + 1).map((next) => `${next}\n\n`);
      assert.equal(await events(id, position), rest.join(''), `after ${position}`);
    }
  });

  it('a message stream fills a silence of 15 s with the event ping, which has no id', async () => {
    const text = await (await post({ ...message('WORDS:2@0.06'), stream: true }, {})).text();
    assert.match(
      text,
      /\n\nevent: ping\ndata: \{"type":"ping"\}\n\nevent: content_block_delta\ndata: .*\nid: \d+\.\d+\n/,
    );
    const events = new AnthropicEvents();
    for (const block of text.split('\n\n').slice(0, -1)) events.take(block);
  });

  it('a held message can be followed as events', async () => {
    const response = await post(message('Reply with exactly: held'), { 'idempotency-key': randomUUID() });
    const { id } = (await response.json()) as Anthropic.Message;
    const types = [...(await events(id)).matchAll(/^event: (\w+)$/gm)].map(([, type]) => type);
    assert.deepEqual(types, [
      ...['message_start', 'content_block_start', 'content_block_delta', 'content_block_stop'],
      ...['message_delta', 'message_stop'],
    ]);
  });

  it('a cancelled message stream ends with the event error', async () => {
    const stream = await client.messages.create({ ...message('WORDS:1000@20'), stream: true });
    await assert.rejects(
      async () => {
        for await (const event of stream) {
          if (event.type === 'message_start') await gateway.fetch(`/v1/jobs/${event.message.id}`, { method: 'DELETE' });
        }
      },
      (error) => error instanceof APIError && error.type === 'invalid_request_error' && /cancelled/.test(error.message),
    );
  });
});
