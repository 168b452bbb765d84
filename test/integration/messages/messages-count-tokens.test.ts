import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, before, describe, it } from 'node:test';
import type Anthropic from '@anthropic-ai/sdk';
import { anthropicClient } from '../../support/anthropic-client.ts';
import { assertAnthropicError } from '../../support/anthropic-errors.ts';
import { TestGateway } from '../../support/gateway.ts';
import { leftovers } from '../../support/leftovers.ts';
import { vendorCalls } from '../../support/vendor-journal.ts';

describe('POST /v1/messages/count_tokens', () => {
  let gateway: TestGateway;
  let client: Anthropic;
  before(async () => {
    gateway = await TestGateway.start();
    client = anthropicClient(gateway);
  });
  after(() => gateway.stop());

  const count = async (text: string, more: object = {}): Promise<number> => {
    const messages = [{ role: 'user' as const, content: text }];
    const { input_tokens: tokens, ...rest } = await client.messages.countTokens({
      model: 'sandbox-chat',
      messages,
      ...more,
    });
    assert.deepEqual(rest, {});
    return tokens;
  };

  it('POST /v1/messages/count_tokens counts messages, system prompt and tools without a vendor call', async () => {
    const hello = await count('Hello world');
    assert.equal(hello, 9);
    assert.equal(await count('Hello world, hello world'), 12);
    assert.ok((await count('Hello world', { system: 'You are kind.' })) > hello);
    const tools = [{ name: 'get_weather', input_schema: { type: 'object', properties: { city: { type: 'string' } } } }];
    assert.ok((await count('Hello world', { tools })) > hello + 15);
    assert.ok((await count('<|endoftext|>')) > 7, 'a mark of the tokenizer is text');
    assert.deepEqual(await vendorCalls(gateway), []);
  });

  it('POST /v1/messages/count_tokens estimates images', async () => {
    const source = { type: 'base64', media_type: 'image/png', data: 'AAAA' };
    const messages = [{ role: 'user', content: [{ type: 'image', source }] }];
    assert.ok((await count('', { messages })) > 500);
  });

  it('POST /v1/messages/count_tokens counts a long text, and one without a break', async () => {
    for (const [text, least] of [
      ['The quick brown fox jumps over the lazy dog. '.repeat(40_000), 400_000],
      ['a'.repeat(1_000_000), 100_000],
      [' '.repeat(1_000_000), 5000],
    ] as const) {
      assert.ok((await count(text)) >= least);
    }
  });

  it('POST /v1/messages/count_tokens delays no other request of its worker', async () => {
    // Noise is what takes longest.
    const noise = randomBytes(450_000).toString('base64');
    let left = 2;
    const counts = [1, 2].map(async () => {
      assert.ok((await count(noise)) > 100_000);
      left--;
    });
    // One is counted after the other: now it is the second one's turn.
    await Promise.race(counts);
    const messages = [{ role: 'user', content: 'Hi' }];
    const body = JSON.stringify({ model: 'sandbox-chat', messages, user: 'meanwhile' });
    const chat = await gateway.fetch('/v1/chat/completions', { method: 'POST', body });
    assert.equal(chat.status, 200);
    assert.equal(left, 1, 'the chat was answered after the count');
    await Promise.all(counts);
  });

  it('POST /v1/messages/count_tokens returns 400 and 404 in the Anthropic shape for invalid requests', async () => {
    for (const body of ['{', '{"model":"sandbox-chat"}', '{"model":"sandbox-chat","messages":[]}']) {
      const response = await gateway.fetch('/v1/messages/count_tokens', { method: 'POST', body });
      await assertAnthropicError(response, 400, 'invalid_request_error');
    }
    const body = JSON.stringify({ model: 'none', messages: [{ role: 'user', content: 'Hi' }] });
    const response = await gateway.fetch('/v1/messages/count_tokens', { method: 'POST', body });
    await assertAnthropicError(response, 404, 'not_found_error');
  });

  it('POST /v1/messages/count_tokens leaves nothing in Redis', async () => {
    assert.deepEqual(await leftovers(gateway.redisUrl), []);
  });
});
