import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type Anthropic from '@anthropic-ai/sdk';
import { zodOutputFormat } from '@anthropic-ai/sdk/helpers/zod';
import { z } from 'zod';
import { anthropicClient, callsOf, message, textOfMessage } from '../../support/anthropic-client.ts';
import { TestGateway } from '../../support/gateway.ts';
import { leftovers } from '../../support/leftovers.ts';

const weather: Anthropic.Tool = {
  name: 'get_weather',
  description: 'Tells the weather.',
  input_schema: {
    type: 'object',
    properties: { city: { type: 'string' }, unit: { enum: ['c', 'f'] } },
    required: ['city', 'unit'],
    additionalProperties: false,
  },
};
const stocks: Anthropic.Tool = {
  name: 'find_stock',
  input_schema: { type: 'object', properties: { symbol: { type: 'string' } }, required: ['symbol'] },
};
const tools = [weather, stocks];
/** A picture of one pixel. */
const png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
const image: Anthropic.ImageBlockParam = {
  type: 'image',
  source: { type: 'base64', media_type: 'image/png', data: png },
};

describe('POST /v1/messages by the Anthropic client', () => {
  let gateway: TestGateway;
  let client: Anthropic;
  before(async () => {
    gateway = await TestGateway.start();
    client = anthropicClient(gateway);
  });
  after(() => gateway.stop());

  /** The message of a request, which has to be the same held and streamed, but for its id. */
  async function both(request: Anthropic.MessageCreateParamsNonStreaming): Promise<Anthropic.Message> {
    const held = await client.messages.create(request);
    const streamed = await client.messages.stream(request).finalMessage();
    const comparable = (answer: Anthropic.Message) => {
      // The client adds `parsed_output` to what it has streamed.
      const text = JSON.stringify(answer, (name, value) => (name === 'parsed_output' ? undefined : value));
      const { id: _id, usage, ...rest } = JSON.parse(text) as Anthropic.Message;
      const { cache_read_input_tokens: cached, ...counts } = usage;
      return {
        ...rest,
        // The second request finds the prompt of the first in the cache.
        usage: { ...counts, input_tokens: counts.input_tokens + (cached ?? 0) },
        content: rest.content.map((block) => (block.type === 'tool_use' ? { ...block, id: 'any' } : block)),
      };
    };
    assert.deepEqual(comparable(streamed), comparable(held));
    return held;
  }

  it('POST /v1/messages returns a message with every field of the client type', async () => {
    const { data: answer, request_id: requestId } = await client.messages
      .create(message('Reply with exactly: héllo 😀'))
      .withResponse();
    assert.match(answer.id, /^msg_[0-9a-f]{32}$/);
    assert.equal(requestId, answer.id.replace('msg_', 'job_'));
    const { input_tokens: input, output_tokens: output, ...usage } = answer.usage;
    assert.ok(input > 0);
    assert.equal(output, 2);
    assert.deepEqual(usage, {
      ...{ cache_creation_input_tokens: 0, cache_read_input_tokens: 0, cache_creation: null, server_tool_use: null },
      ...{ inference_geo: null, service_tier: 'standard', speed: null, output_tokens_details: { thinking_tokens: 0 } },
    });
    assert.deepEqual(
      { ...answer, usage: null, id: '' },
      {
        ...{ id: '', type: 'message', role: 'assistant', model: 'sandbox-chat', usage: null, container: null },
        ...{ stop_reason: 'end_turn', stop_sequence: null, stop_details: null, diagnostics: null },
        content: [{ type: 'text', text: 'héllo 😀', citations: [] }],
      },
    );
  });

  it('POST /v1/messages streams events in the Anthropic order, equal to the held message', async () => {
    const answer = await both(message('WORDS:30'));
    assert.equal(textOfMessage(answer).split(' ').length, 30);
    const types: string[] = [];
    for await (const event of await client.messages.create({ ...message('WORDS:30'), stream: true })) {
      if (types.at(-1) !== event.type) types.push(event.type);
    }
    assert.deepEqual(types, [
      ...['message_start', 'content_block_start', 'content_block_delta', 'content_block_stop'],
      ...['message_delta', 'message_stop'],
    ]);
  });

  it('POST /v1/messages accepts a Bearer key and beta headers', async () => {
    const bearer = anthropicClient(gateway, { authToken: gateway.apiKey });
    const answer = await bearer.beta.messages.create({
      ...{ model: 'sandbox-chat', max_tokens: 10, betas: ['context-management-2025-06-27'] },
      messages: [{ role: 'user', content: 'Reply with exactly: beta' }],
    });
    assert.deepEqual(answer.content, [{ type: 'text', text: 'beta', citations: [] }]);
  });

  it('POST /v1/messages ends an answer at max_tokens with that stop reason', async () => {
    const answer = await both(message('WORDS:50', { max_tokens: 5 }));
    assert.equal(answer.stop_reason, 'max_tokens');
    assert.equal(textOfMessage(answer), 'word1 word2 word3 word4 word5');
    assert.equal(answer.usage.output_tokens, 5);
  });

  it('POST /v1/messages ends an answer at a stop sequence', async () => {
    const answer = await both(message('WORDS:50', { stop_sequences: [' word4', 'never'] }));
    assert.equal(textOfMessage(answer), 'word1 word2 word3');
  });

  it('POST /v1/messages counts cached prompt tokens as cache reads, not as input', async () => {
    const request = message(`Remember this. ${'The same long beginning. '.repeat(200)}`);
    const first = await client.messages.create(request);
    const second = await client.messages.create(request);
    assert.ok((second.usage.cache_read_input_tokens ?? 0) > 100);
    assert.equal(second.usage.input_tokens + (second.usage.cache_read_input_tokens ?? 0), first.usage.input_tokens);
  });

  it('POST /v1/messages returns thinking as its own block, unless it is disabled or omitted', async () => {
    const request = message('Reply with exactly: done', { model: 'sandbox-reasoning' });
    for (const thinking of [
      { type: 'enabled', budget_tokens: 2048 },
      { type: 'adaptive', display: 'summarized' },
    ]) {
      const { content, usage } = await both({ ...request, thinking } as typeof request);
      assert.deepEqual(
        content.map(({ type }) => type),
        ['thinking', 'text'],
      );
      const [thought] = content;
      assert.ok(thought?.type === 'thinking' && /characters long/.test(thought.thinking));
      assert.ok((usage.output_tokens_details?.thinking_tokens ?? 0) > 0);
    }
    for (const thinking of [{ type: 'disabled' }, { type: 'adaptive', display: 'omitted' }]) {
      const { content, usage } = await both({ ...request, thinking } as typeof request);
      assert.deepEqual(content, [{ type: 'text', text: 'done', citations: [] }]);
      assert.equal(usage.output_tokens_details?.thinking_tokens === 0, thinking.type === 'disabled');
    }
  });

  it('POST /v1/messages lets effort and budget decide the amount of thinking', async () => {
    const tokens = async (more: object): Promise<number> => {
      const { usage } = await client.messages.create(message('Hi', { model: 'sandbox-reasoning', ...more }));
      return usage.output_tokens_details?.thinking_tokens ?? 0;
    };
    const low = await tokens({ thinking: { type: 'enabled', budget_tokens: 1024 } });
    const high = await tokens({ thinking: { type: 'enabled', budget_tokens: 17_000 }, max_tokens: 20_000 });
    assert.ok(low < high);
    assert.equal(await tokens({ output_config: { effort: 'low' } }), low);
    assert.equal(await tokens({ output_config: { effort: 'max' } }), high);
  });

  it('POST /v1/messages shows images to the model, as data and as links', async () => {
    const ask = async (block: Anthropic.ImageBlockParam): Promise<string> =>
      textOfMessage(await both(message('', { messages: [{ role: 'user', content: [block] }] })));
    assert.match(await ask(image), /PNG image of 1×1 pixels \(image\/png/i);
    const source = { type: 'url', url: 'https://example.com/a.png' } as const;
    assert.match(await ask({ type: 'image', source }), /the image at https:\/\/example\.com\/a\.png/);
  });

  it('POST /v1/messages passes text documents as text, and a PDF as a file', async () => {
    const ask = async (source: object, more: object = {}): Promise<string> => {
      const document = { type: 'document', source, ...more };
      return textOfMessage(
        await client.messages.create(message('', { messages: [{ role: 'user', content: [document] }] })),
      );
    };
    const text = { type: 'text', media_type: 'text/plain', data: 'Reply with exactly: read' };
    assert.equal(await ask(text, { title: 'A note', context: 'Old.' }), 'read');
    const pdf = { type: 'base64', media_type: 'application/pdf', data: 'JVBERi0xLjQ=' };
    assert.match(await ask(pdf, { title: 'Report' }), /You sent the file "Report\.pdf"/);
  });

  it('POST /v1/messages accepts an image of 2 MB', async () => {
    const blocks = [{ ...image, source: { ...image.source, data: png + 'A'.repeat(2_000_000) } }];
    const answer = await client.messages.create(message('', { messages: [{ role: 'user', content: blocks }] }));
    assert.match(textOfMessage(answer), /image of 1×1 pixels/);
  });

  it('POST /v1/messages calls tools with inputs that match their schemas', async () => {
    const answer = await both(message('How is the weather in Paris?', { tools }));
    assert.equal(answer.stop_reason, 'tool_use');
    const [call, ...others] = callsOf(answer);
    assert.deepEqual(others, []);
    assert.equal(call?.name, 'get_weather');
    assert.deepEqual(Object.keys(call?.input as object).sort(), ['city', 'unit']);
  });

  it('POST /v1/messages calls two tools in parallel, unless that is disabled', async () => {
    const text = 'Tell me the weather and the stock';
    const calls = callsOf(await both(message(text, { tools })));
    assert.deepEqual(calls.map(({ name }) => name).sort(), ['find_stock', 'get_weather']);
    assert.notEqual(calls[0]?.id, calls[1]?.id);
    const alone = { tools, tool_choice: { type: 'auto', disable_parallel_tool_use: true } };
    assert.equal(callsOf(await both(message(text, alone))).length, 1);
  });

  it('POST /v1/messages obeys tool_choice any, tool and none', async () => {
    const called = async (text: string, choice: object): Promise<string[]> =>
      callsOf(await both(message(text, { tools, tool_choice: choice }))).map(({ name }) => name);
    assert.equal((await called('Good morning', { type: 'any' })).length, 1);
    assert.deepEqual(await called('How is the weather?', { type: 'tool', name: 'find_stock' }), ['find_stock']);
    assert.deepEqual(await called('How is the weather?', { type: 'none' }), []);
  });

  it('POST /v1/messages streams a tool input in pieces, byte for byte', async () => {
    const json = '{"city":"Zürich \\"x\\"","unit":"c"}';
    const pieces: string[] = [];
    const stream = client.messages.stream(message(`TOOL:get_weather ${json}`, { tools }));
    stream.on('inputJson', (piece) => void pieces.push(piece));
    const [call] = callsOf(await stream.finalMessage());
    assert.deepEqual(call?.input, JSON.parse(json));
    assert.equal(pieces.join(''), json);
    assert.ok(pieces.length > 2);
  });

  it('POST /v1/messages passes the results of parallel calls on, with an error and with thinking', async () => {
    const request = message('Tell me the weather and the stock', {
      ...{ tools, model: 'sandbox-reasoning', thinking: { type: 'adaptive' } },
    });
    const asked = await client.messages.create(request);
    const [one, other] = callsOf(asked);
    assert.ok(one && other && asked.content[0]?.type === 'thinking');
    const answer = await both({
      ...request,
      messages: [
        ...request.messages,
        { role: 'assistant', content: asked.content as Anthropic.ContentBlockParam[] },
        {
          role: 'user',
          content: [
            { type: 'tool_result', tool_use_id: other.id, content: 'gone', is_error: true },
            { type: 'tool_result', tool_use_id: one.id, content: [{ type: 'text', text: 'sunny' }] },
          ],
        },
      ],
    });
    assert.equal(
      textOfMessage(answer),
      `The tool ${other.name} answered: Error: gone\nThe tool ${one.name} answered: sunny`,
    );
  });

  it('POST /v1/messages shows an image in a tool result to the model', async () => {
    const call = { type: 'tool_use', id: 'toolu_1', name: 'get_weather', input: {} };
    const result = { type: 'tool_result', tool_use_id: 'toolu_1', content: [image] };
    const answer = await client.messages.create(
      message('', {
        tools,
        messages: [
          { role: 'user', content: 'Look' },
          { role: 'assistant', content: [call] },
          { role: 'user', content: [result] },
        ],
      }),
    );
    assert.match(textOfMessage(answer), /PNG image of 1×1 pixels/i);
  });

  it('POST /v1/messages with output_config.format returns an instance of the schema', async () => {
    const shape = z.object({ name: z.string(), size: z.number().int(), kind: z.enum(['a', 'b']) });
    const format = zodOutputFormat(shape);
    const parsed = await client.messages.parse({ ...message('Make one'), output_config: { format } });
    assert.ok(shape.safeParse(parsed.parsed_output).success);
  });

  it('POST /v1/messages accepts the requests of Claude Code, and names what it ignores', async () => {
    const { data, response } = await client.messages
      .create(
        message('', {
          system: [{ type: 'text', text: 'You are an agent.', cache_control: { type: 'ephemeral' } }],
          messages: [
            {
              role: 'user',
              content: [
                { type: 'text', text: '<system-reminder>Be brief.</system-reminder>' },
                { type: 'text', text: 'Reply with exactly: agreed', cache_control: { type: 'ephemeral', ttl: '1h' } },
              ],
            },
            { role: 'system', content: [{ type: 'text', text: '# Environment' }] },
          ],
          tools: [
            { ...stocks, defer_loading: true },
            { type: 'web_search_20250305', name: 'web_search', max_uses: 3 },
          ],
          metadata: { user_id: JSON.stringify({ device_id: 'd'.repeat(64), session_id: 's' }) },
          thinking: { type: 'adaptive', display: 'updates' },
          context_management: { edits: [{ type: 'clear_thinking_20251015', keep: 'all' }] },
          output_config: { effort: 'high' },
        }),
      )
      .withResponse();
    assert.equal(textOfMessage(data), 'agreed');
    const ignored = response.headers.get('x-sluice-ignored')?.split(', ').sort();
    assert.deepEqual(ignored, ['context_management', 'tools.web_search_20250305']);
  });

  it('POST /v1/messages leaves nothing in Redis', async () => {
    assert.deepEqual(await leftovers(gateway.redisUrl), []);
  });
});
