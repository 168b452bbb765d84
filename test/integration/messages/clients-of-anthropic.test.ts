import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type Anthropic from '@anthropic-ai/sdk';
import { betaTool } from '@anthropic-ai/sdk/helpers/beta/json-schema';
import { anthropicClient, callsOf, message, textOfMessage } from '../../support/anthropic-client.ts';
import { TestGateway } from '../../support/gateway.ts';

type Held = Anthropic.MessageCreateParamsNonStreaming;

describe('requests of published Anthropic clients', () => {
  let gateway: TestGateway;
  let client: Anthropic;
  before(async () => {
    gateway = await TestGateway.start();
    client = anthropicClient(gateway);
  });
  after(() => gateway.stop());

  it('POST /v1/messages ignores an X-Stainless-Timeout that is not a positive number', async () => {
    const { max_tokens: _, ...counted } = message('Hi');
    for (const value of ['NOT_GIVEN', '0', '-1', 'None', 'NaN', 'Infinity', '']) {
      const headers = { 'x-stainless-timeout': value };
      const [count, streamed, held] = await Promise.all([
        client.messages.countTokens(counted, { headers }),
        client.messages.stream(message('Reply with exactly: streamed'), { headers }).finalMessage(),
        client.messages.create(message('Reply with exactly: held'), { headers }),
      ]);
      assert.ok(count.input_tokens > 0);
      assert.deepEqual([textOfMessage(streamed), textOfMessage(held)], ['streamed', 'held'], value);
    }
  });

  for (const stream of [false, true]) {
    it(`the tool runner of the Anthropic client calls its tool and completes (${stream ? 'streamed' : 'held'})`, async () => {
      const cities: unknown[] = [];
      const tool = betaTool({
        name: 'get_weather',
        description: 'Tells the weather.',
        inputSchema: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
        run: ({ city }: { city: string }) => {
          cities.push(city);
          return `It is sunny in ${city}.`;
        },
      });
      const runner = client.beta.messages.toolRunner({
        ...message('TOOL:get_weather {"city":"Rome"}'),
        tools: [tool],
        stream,
      } as Parameters<typeof client.beta.messages.toolRunner>[0]);
      const last = await runner.runUntilDone();
      assert.deepEqual(cities, ['Rome']);
      assert.match(JSON.stringify(last.content), /sunny in Rome/);
    });
  }

  it('POST /v1/messages returns 400 with thread_unsupported_request for a thread', async () => {
    const answer = await gateway.fetch('/v1/messages', {
      method: 'POST',
      body: JSON.stringify(message('Hi', { thread: { type: 'create' } })),
    });
    const { error } = (await answer.json()) as { error: { type: string; details: unknown } };
    assert.deepEqual([answer.status, error.type], [400, 'invalid_request_error']);
    assert.deepEqual(error.details, { error_code: 'thread_unsupported_request', unsupported: ['thread'] });
    // A body that is parsed in the thread for large ones says the same.
    const large = message('x'.repeat(300 * 1024), { thread: { type: 'create' } });
    const other = await gateway.fetch('/v1/messages', { method: 'POST', body: JSON.stringify(large) });
    assert.deepEqual(((await other.json()) as { error: { details: unknown } }).error.details, error.details);
  });

  it('POST /v1/messages shows no thinking unless it is requested, held and streamed', async () => {
    const request = message('Reply with exactly: done', { model: 'sandbox-reasoning' });
    const held = await client.messages.create(request);
    const streamed = await client.messages.stream(request).finalMessage();
    for (const { content } of [held, streamed]) {
      assert.deepEqual(
        content.map(({ type }) => type),
        ['text'],
      );
    }
    assert.ok((held.usage.output_tokens_details?.thinking_tokens ?? 0) > 0, 'the model did think');
  });

  it('POST /v1/messages names the stop sequence that ended an answer, held and streamed', async () => {
    const request = message('WORDS:50', { stop_sequences: ['never', ' word4'] });
    const held = await client.messages.create(request);
    const streamed = await client.messages.stream(request).finalMessage();
    for (const answer of [held, streamed]) {
      assert.deepEqual([answer.stop_reason, answer.stop_sequence], ['stop_sequence', ' word4']);
    }
    const whole = await client.messages.create(message('WORDS:3', { stop_sequences: ['never'] }));
    assert.deepEqual([whole.stop_reason, whole.stop_sequence], ['end_turn', null]);
  });

  describe('deferred tools', () => {
    const schema = { type: 'object' as const, properties: { query: { type: 'string' } } };
    const search = { name: 'tool_search', input_schema: schema };
    const deferred = { name: 'deploy_rocket', input_schema: schema, defer_loading: true };
    const ask = (more: object): Promise<Anthropic.Message> =>
      client.messages.create(message('Please deploy the rocket', { tools: [search, deferred], ...more }) as Held);

    it('POST /v1/messages does not offer a deferred tool before a tool_reference names it', async () => {
      const { content } = await ask({});
      assert.deepEqual(callsOf({ content }), []);
      const headers = await client.messages.create(message('Hi', { tools: [search, deferred] }) as Held).withResponse();
      assert.equal(headers.response.headers.get('x-sluice-ignored'), null);
    });

    it('POST /v1/messages offers a deferred tool once a tool result or a system block has named it', async () => {
      const reference = { type: 'tool_reference', tool_name: 'deploy_rocket' };
      const searched = [
        { role: 'user', content: 'Find a tool' },
        { role: 'assistant', content: [{ type: 'tool_use', id: 'toolu_1', name: 'tool_search', input: {} }] },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_1', content: [reference] }] },
        { role: 'assistant', content: 'Found it.' },
        { role: 'user', content: 'Please deploy the rocket' },
      ];
      const added = [
        {
          role: 'system',
          content: [{ type: 'tool_addition', tool: { type: 'tool_reference', name: 'deploy_rocket' } }],
        },
        { role: 'user', content: 'Please deploy the rocket' },
      ];
      for (const messages of [searched, added]) {
        const names = callsOf(await ask({ messages })).map(({ name }) => name);
        assert.deepEqual(names, ['deploy_rocket']);
      }
    });

    it("POST /v1/messages offers deferred tools from the start if Anthropic's own search for tools, which it lacks, is to find them", async () => {
      for (const kind of ['regex', 'bm25']) {
        const own = { type: `tool_search_tool_${kind}_20251119`, name: `tool_search_tool_${kind}` };
        const request = message('Please deploy the rocket', { tools: [own, deferred] }) as Held;
        const { data, response } = await client.messages.create(request).withResponse();
        assert.deepEqual(
          callsOf(data).map(({ name }) => name),
          ['deploy_rocket'],
        );
        assert.equal(response.headers.get('x-sluice-ignored'), `tools.${own.type}`);
      }
    });

    it('POST /v1/messages offers a deferred tool that tool_choice forces', async () => {
      const answer = await ask({ tool_choice: { type: 'tool', name: 'deploy_rocket' } });
      assert.deepEqual(
        callsOf(answer).map(({ name }) => name),
        ['deploy_rocket'],
      );
    });
  });

  it('the sandbox prefers a directive in the last text over a tool named in a reminder', async () => {
    const tools = [{ name: 'TaskCreate', input_schema: { type: 'object' as const } }];
    const reminder = { type: 'text' as const, text: 'Reminder: use TaskCreate to create a task.' };
    const last = { type: 'text' as const, text: 'Reply with exactly: pong' };
    const answer = await client.messages.create({
      ...message('', { tools }),
      messages: [{ role: 'user', content: [reminder, last] }],
    });
    assert.deepEqual([callsOf(answer), textOfMessage(answer)], [[], 'pong']);
    const plain = await client.messages.create({
      ...message('', { tools }),
      messages: [{ role: 'user', content: [reminder, { type: 'text', text: 'Good morning' }] }],
    });
    assert.deepEqual(callsOf(plain), []);
  });
});
