import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type Anthropic from '@anthropic-ai/sdk';
import fc from 'fast-check';
import { messages } from '../../../api/endpoints/messages/messages.ts';
import {
  type MessageViewOptions,
  parseMessageCount,
  parseMessages,
} from '../../../api/endpoints/messages/parse-messages.ts';
import { textOf } from '../../../api/pipeline/request-text.ts';
import type { ViewedJob } from '../../../api/replies/view.ts';
import type { Frame } from '../../../shared/jobs/append.ts';
import { executeChat } from '../../../workers/execute/execute.ts';
import { withoutHints } from '../../../workers/execute/without-hints.ts';
import { createAnthropic } from '../../../workers/vendors/anthropic/anthropic.ts';
import { toCountRequest, toMessageRequest } from '../../../workers/vendors/anthropic/request.ts';
import { madeUpModel } from '../../support/routed-model.ts';
import { throughLog } from '../../support/through-log.ts';
import { callOf, collect, sendJson, sendStream, startFixtureVendor } from '../contracts/fixture-vendor.ts';
import { eventsOf, messageOf, recorded, text, toWire } from '../recorded/recorded-anthropic.ts';

type Request = Anthropic.MessageCreateParamsNonStreaming;
type Fields = Record<string, unknown>;

/** The model's row: it reasons, and its vendor takes every hint. */
const row = madeUpModel({ id: 'm', capability: 'chat', chat: { hints: true, effort: true } }, 'anthropic');

/** What our own Messages endpoint and the adapter, one after the other, make of a request. */
async function throughUs(request: Request): Promise<Fields> {
  const parsed = await parseMessages(Buffer.from(JSON.stringify(request)));
  const { model, stream } = parsed;
  return JSON.parse(toMessageRequest({ model, stream, request: withoutHints(textOf(parsed.request), row) }));
}

const asBlocks = (content: unknown): unknown =>
  typeof content === 'string' ? [{ type: 'text', text: content }] : content;

/** A request with everything written in full that Anthropic lets one write short: texts for blocks of them. */
function inFull({ system, messages, ...rest }: Request): Fields {
  const turns = messages.map(({ role, content }) => {
    const blocks = asBlocks(content) as Fields[];
    return {
      role,
      content: blocks.map((block) =>
        block.type === 'tool_result' ? { ...block, content: asBlocks(block.content) } : block,
      ),
    };
  });
  return { ...rest, ...(system !== undefined && { system: asBlocks(system) }), messages: turns };
}

const ephemeral = { cache_control: { type: 'ephemeral' as const } };
const hour = { cache_control: { type: 'ephemeral' as const, ttl: '1h' as const } };
const png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

/** As Claude Code sends it: marks on tools, on the system prompt and on the last blocks, thinking and parallel calls. */
const agentRequest: Request = {
  model: 'claude-opus-5-5',
  max_tokens: 32_000,
  system: [
    { type: 'text', text: "You are Claude Code, Anthropic's official CLI for Claude." },
    { type: 'text', text: 'You are an interactive agent.', ...hour },
  ],
  tools: [
    {
      name: 'Read',
      description: 'Reads a file.',
      input_schema: { type: 'object', properties: { file_path: { type: 'string' } }, required: ['file_path'] },
    },
    {
      name: 'Bash',
      input_schema: { type: 'object', properties: {}, additionalProperties: false },
      strict: true,
      ...ephemeral,
    },
  ],
  tool_choice: { type: 'auto', disable_parallel_tool_use: true },
  thinking: { type: 'adaptive', display: 'summarized' },
  output_config: { effort: 'high' },
  metadata: { user_id: 'user_0123' },
  stop_sequences: ['</done>'],
  messages: [
    {
      role: 'user',
      content: [
        { type: 'text', text: '<system-reminder>Today is Saturday.</system-reminder>' },
        { type: 'text', text: 'Look at both files.', ...ephemeral },
        { type: 'image', source: { type: 'base64', media_type: 'image/png', data: png } },
        { type: 'image', source: { type: 'url', url: 'https://example.com/a.png' }, ...ephemeral },
        {
          type: 'document',
          source: { type: 'base64', media_type: 'application/pdf', data: 'JVBERi0=' },
          title: 'Report',
        },
      ],
    },
    {
      role: 'assistant',
      content: [
        { type: 'thinking', thinking: 'Both at once.', signature: 'EqQBCgIYAhIM1gbcDa9GJwZA2b3h' },
        { type: 'redacted_thinking', data: 'EmwKAhgBEgy3va3pzix' },
        { type: 'text', text: 'I read them.' },
        { type: 'tool_use', id: 'toolu_01', name: 'Read', input: { file_path: '/a', limit: 5 } },
        { type: 'tool_use', id: 'toolu_02', name: 'Read', input: {}, ...ephemeral },
      ],
    },
    {
      role: 'user',
      content: [
        { type: 'tool_result', tool_use_id: 'toolu_01', content: 'Error: no such file', is_error: true },
        { type: 'tool_result', tool_use_id: 'toolu_02', content: [{ type: 'text', text: 'three' }], ...ephemeral },
        { type: 'text', text: 'Go on.' },
      ],
    },
    { role: 'system', content: 'The workspace is read-only now.' },
    {
      role: 'assistant',
      content: [
        { type: 'thinking', thinking: '', signature: 'EqQBnothingShown' },
        { type: 'text', text: 'Done.' },
      ],
    },
    { role: 'user', content: 'Thanks!' },
  ],
};

describe('requests through the Messages endpoint to Anthropic', () => {
  it("an agent's Messages request reaches Anthropic unchanged", async () => {
    assert.deepEqual(await throughUs(agentRequest), inFull(agentRequest));
  });

  it('a Messages request keeps sampling, top_k, formats, tiers, tool choices and automatic caching on its way to Anthropic', async () => {
    const messages: Request['messages'] = [{ role: 'user', content: 'Hello!' }];
    const base = { model: 'claude-opus-4-6', max_tokens: 100, messages };
    const schema = { type: 'object', properties: {}, additionalProperties: false };
    const tools = [{ name: 'f', input_schema: { type: 'object' as const } }];
    const requests: object[] = [
      { temperature: 0.3, top_k: 12 },
      { top_p: 0.9 },
      { output_config: { format: { type: 'json_schema', schema } } },
      { service_tier: 'standard_only' },
      { tools, tool_choice: { type: 'any' } },
      { tools, tool_choice: { type: 'tool', name: 'f', disable_parallel_tool_use: true } },
      { tools, tool_choice: { type: 'none' } },
      { cache_control: { type: 'ephemeral', ttl: '1h' } },
      { thinking: { type: 'disabled' } },
      { stream: true },
      // It only writes the prompt cache.
      { max_tokens: 0 },
    ];
    for (const more of requests) {
      const request = { ...base, ...more } as Request;
      assert.deepEqual(await throughUs(request), inFull(request));
    }
  });

  it('a Messages request keeps its thinking budgets, efforts and display on its way to Anthropic', async () => {
    const messages: Request['messages'] = [{ role: 'user', content: 'Hello!' }];
    const format = { type: 'json_schema', schema: { type: 'object', properties: {}, additionalProperties: false } };
    const requests: [model: string, more: object][] = [
      ['claude-sonnet-4-5', { thinking: { type: 'enabled', budget_tokens: 1024 } }],
      ['claude-sonnet-4-5', { thinking: { type: 'enabled', budget_tokens: 31_999, display: 'omitted' } }],
      ['claude-opus-4-5', { thinking: { type: 'enabled', budget_tokens: 5000 }, output_config: { effort: 'low' } }],
      ['claude-opus-4-6', { thinking: { type: 'adaptive' }, output_config: { effort: 'max', format } }],
      ['claude-opus-5-5', { thinking: { type: 'adaptive' } }],
      ['claude-opus-5-5', { output_config: { effort: 'xhigh', task_budget: { type: 'tokens', total: 64_000 } } }],
      ['claude-sonnet-5-5', { thinking: { type: 'between_tools' } }],
      ['claude-haiku-4-5', { thinking: { type: 'disabled' }, temperature: 0.2 }],
    ];
    for (const [model, more] of requests) {
      const request = { model, max_tokens: 64_000, messages, ...more } as Request;
      assert.deepEqual(await throughUs(request), inFull(request));
    }
  });

  it('a Messages job reaches Anthropic with its budget and signed thinking, and the new thinking returns signed', async () => {
    const server = await startFixtureVendor();
    const vendor = createAnthropic({ name: 'anthropic', baseUrl: server.baseUrl, apiKey: 'sk-ant-test-0123456789' });
    const [name, message] = Object.entries(recorded).find(([, { content }]) => content[0]?.type === 'thinking') ?? [];
    assert.ok(message, name);
    server.answer((response) => sendStream(response, [toWire(eventsOf(message))]));
    const thinking = { type: 'enabled' as const, budget_tokens: 10_007 };
    const request = {
      ...agentRequest,
      model: 'claude-sonnet-4-5',
      messages: agentRequest.messages.slice(0, 3),
      thinking,
    };
    const { request: chat } = await parseMessages(Buffer.from(JSON.stringify({ ...request, stream: true })));
    const sink = collect();
    const call = callOf({ model: request.model, request: String(chat) });
    await executeChat({ vendor, row, endpoint: 'messages', keep: false, call, sink });
    await vendor.close();
    await server.close();
    const sent = JSON.parse(server.requests[0]?.body ?? assert.fail());
    assert.deepEqual(sent, { ...inFull(request), stream: true });
    const signatures = sink.data().flatMap((frame) => JSON.stringify(frame).match(/"signature":"[^"]+"/g) ?? []);
    const [first] = message.content;
    assert.deepEqual(signatures[0], `"signature":"${first?.type === 'thinking' && first.signature}"`);
  });

  it('a Messages request to Anthropic shows images of a tool result right after it, in the same message', async () => {
    const image = {
      type: 'image' as const,
      source: { type: 'base64' as const, media_type: 'image/png' as const, data: png },
    };
    const sent = await throughUs({
      model: 'claude-opus-5-5',
      max_tokens: 100,
      messages: [
        { role: 'user', content: 'Look.' },
        { role: 'assistant', content: [{ type: 'tool_use', id: 'toolu_01', name: 'Read', input: {} }] },
        {
          role: 'user',
          content: [
            { type: 'tool_result', tool_use_id: 'toolu_01', content: [{ type: 'text', text: 'a.png' }, image] },
          ],
        },
      ],
    });
    assert.deepEqual((sent.messages as Fields[]).at(-1), {
      role: 'user',
      content: [
        { type: 'tool_result', tool_use_id: 'toolu_01', content: [{ type: 'text', text: 'a.png' }] },
        { type: 'text', text: 'From the result of the tool call toolu_01:' },
        image,
      ],
    });
  });

  it('a Messages request of any blocks reaches Anthropic with every text, mark, id, signature and input', async () => {
    // Anthropic refuses blank text.
    const text = fc.string({ unit: 'grapheme', minLength: 1 }).filter((each) => each.trim() !== '');
    const marked = <Block extends object>(block: fc.Arbitrary<Block>) =>
      fc.tuple(block, fc.constantFrom({}, ephemeral, hour)).map(([one, mark]) => ({ ...one, ...mark }));
    const said = marked(text.map((each) => ({ type: 'text' as const, text: each })));
    const thought = fc.oneof(
      fc.tuple(text, text).map(([thinking, signature]) => ({ type: 'thinking' as const, thinking, signature })),
      text.map((data) => ({ type: 'redacted_thinking' as const, data })),
    );
    // Keys by which objects are tampered with are refused by the endpoint.
    const isTaken = (given: unknown): boolean => !/__proto__|constructor/.test(JSON.stringify(given));
    const input = fc.dictionary(fc.string(), fc.jsonValue(), { noNullPrototype: true }).filter(isTaken);
    const use = marked(
      fc.tuple(fc.uuid(), input).map(([id, given]) => ({ type: 'tool_use' as const, id, name: 'f', input: given })),
    );
    const answer = fc.record({
      // A model may think again behind its first words.
      spoken: fc.array(fc.oneof(thought, said), { maxLength: 4 }),
      uses: fc.array(use, { minLength: 1, maxLength: 2 }),
      results: fc.array(marked(fc.record({ text, is_error: fc.constant(true) }, { requiredKeys: ['text'] })), {
        minLength: 2,
        maxLength: 2,
      }),
      more: fc.array(said, { maxLength: 2 }),
    });
    await fc.assert(
      fc.asyncProperty(
        fc.array(said, { minLength: 1, maxLength: 2 }),
        fc.array(answer, { maxLength: 3 }),
        async (first, answers) => {
          const turns = answers.flatMap(({ spoken, uses, results, more }) => {
            const given = uses.map(({ id }, at) => {
              const { text: whole, ...mark } = results[at] ?? assert.fail();
              return { type: 'tool_result', tool_use_id: id, content: whole, ...mark };
            });
            return [
              { role: 'assistant', content: [...spoken, ...uses] },
              { role: 'user', content: [...given, ...more] },
            ];
          });
          const messages = [{ role: 'user', content: first }, ...turns] as Request['messages'];
          const request: Request = { model: 'claude-opus-5-5', max_tokens: 100, messages };
          assert.deepEqual(await throughUs(request), JSON.parse(JSON.stringify(inFull(request))));
        },
      ),
      { numRuns: 200 },
    );
  });

  it('a count_tokens request reaches Anthropic unchanged', async () => {
    const { max_tokens: _most, metadata: _metadata, stop_sequences: _stop, ...counted } = agentRequest;
    const { model, request } = await parseMessageCount(Buffer.from(JSON.stringify(counted)));
    const { max_tokens: _none, ...expected } = inFull({ ...counted, max_tokens: 1 });
    assert.deepEqual(JSON.parse(toCountRequest({ model, request: withoutHints(textOf(request), row) })), expected);
  });
});

/** What our Messages endpoint shows of an answer, after it went through the adapter. */
async function shown(message: Anthropic.Message, isStream: boolean, viewOptions: object = {}): Promise<Fields> {
  const server = await startFixtureVendor();
  const vendor = createAnthropic({
    name: 'anthropic',
    baseUrl: server.baseUrl,
    apiKey: 'sk-ant-test-0123456789abcdef',
  });
  server.answer((response) =>
    isStream ? sendStream(response, [toWire(eventsOf(message))]) : sendJson(response, 200, JSON.stringify(message)),
  );
  const sink = collect();
  const end = await vendor.chat(callOf({ stream: isStream }), sink);
  await vendor.close();
  await server.close();
  const stopSequences = message.stop_sequence === null ? [] : [message.stop_sequence];
  const job: ViewedJob<MessageViewOptions> = {
    id: '0197a3b0c4d57e8f9a0b1c2d3e4f5a6b',
    model: message.model,
    createdAt: 0,
    viewOptions: { hidesThinking: false, stopSequences, ...viewOptions },
    link: (file) => file,
  };
  const frames = throughLog([...sink.frames, { type: 'end', text: end.body }], [1]);
  return JSON.parse(messages.view.held(job, frames));
}

/** The frames of a streamed message, made by a job of the Messages endpoint, and the job. */
async function streamed(message: Anthropic.Message): Promise<{ frames: Frame[]; job: ViewedJob<MessageViewOptions> }> {
  const server = await startFixtureVendor();
  const vendor = createAnthropic({ name: 'anthropic', baseUrl: server.baseUrl, apiKey: 'sk-ant-test-0123456789' });
  server.answer((response) => sendStream(response, [toWire(eventsOf(message))]));
  const sink = collect();
  const end = await executeChat({ vendor, row, endpoint: 'messages', keep: false, call: callOf(), sink });
  await vendor.close();
  await server.close();
  const viewOptions = { hidesThinking: false, stopSequences: [] };
  return {
    frames: throughLog([...sink.frames, { type: 'end', text: String(end.body) }], [1]),
    job: {
      id: '0197a3b0c4d57e8f9a0b1c2d3e4f5a6b',
      model: message.model,
      createdAt: 0,
      viewOptions,
      link: (file) => file,
    },
  };
}

/** Without what the gateway says itself. */
function said({
  content,
  stop_reason,
  stop_sequence,
  stop_details,
  usage,
}: Pick<Anthropic.Message, 'content' | 'stop_reason' | 'stop_sequence' | 'stop_details' | 'usage'>): object {
  const { input_tokens, output_tokens, cache_read_input_tokens, cache_creation_input_tokens } = usage;
  const { output_tokens_details, service_tier, cache_creation } = usage;
  return {
    content: content.map((block) => (block.type === 'text' ? { ...block, citations: [] } : block)),
    ...{
      stop_reason,
      stop_sequence,
      input_tokens,
      output_tokens,
      cache_read_input_tokens,
      cache_creation_input_tokens,
    },
    ...{ output_tokens_details, service_tier, cache_creation, stop_details },
  };
}

describe('answers of Anthropic through the Messages endpoint', () => {
  for (const [name, message] of Object.entries(recorded)) {
    // A chat has no other word for this end.
    const isCut = message.stop_reason === 'pause_turn';
    const unexplained = { type: 'refusal', category: null, explanation: null } as const;
    const details = message.stop_reason === 'refusal' && { stop_details: message.stop_details ?? unexplained };
    const expected = said({ ...message, ...(isCut && { stop_reason: 'max_tokens' }), ...details });
    it(`the Messages endpoint shows Anthropic's streamed answer unchanged: ${name}`, async () => {
      assert.deepEqual(said((await shown(message, true)) as never), expected);
    });
    it(`the Messages endpoint shows Anthropic's held answer unchanged: ${name}`, async () => {
      assert.deepEqual(said((await shown(message, false)) as never), expected);
    });
  }

  it("a streamed message begins with the counts of its input, as Anthropic's own does, also if it is read again once it is stored", async () => {
    const message = messageOf([text('One, two, three.')]);
    const { frames, job } = await streamed(message);
    const read = (all: readonly Frame[]): Anthropic.RawMessageStreamEvent[] =>
      all.flatMap(messages.view.stream(job)).map((event) => JSON.parse(event.slice(event.indexOf('{'))));
    assert.ok(messages.view.final);
    for (const all of [frames, messages.view.final(frames, job)]) {
      const [first, ...rest] = read(all);
      assert.ok(first?.type === 'message_start');
      const { usage } = message;
      const { inference_geo: _geo, ...told } = first.message.usage;
      const { inference_geo: _own, ...expected } = { ...usage, output_tokens: 0, output_tokens_details: null };
      assert.deepEqual(told, expected);
      const last = rest.find((event) => event.type === 'message_delta');
      assert.deepEqual([last?.usage.input_tokens, last?.usage.output_tokens], [usage.input_tokens, 300]);
    }
  });

  it('the Messages endpoint keeps signatures of omitted thinking, and nothing of disabled thinking', async () => {
    const [, message] = Object.entries(recorded).find(([, { content }]) => content[0]?.type === 'thinking') ?? [];
    assert.ok(message);
    const isThought = ({ type }: { type: string }) => type === 'thinking' || type === 'redacted_thinking';
    const signed = message.content.map((block) => (block.type === 'thinking' ? { ...block, thinking: '' } : block));
    for (const isStream of [true, false]) {
      const thoughtsOf = async (viewOptions: object): Promise<object[]> =>
        ((await shown(message, isStream, viewOptions)).content as { type: string }[]).filter(isThought);
      assert.deepEqual(await thoughtsOf({ hidesThinking: true, keepsSignatures: true }), signed.filter(isThought));
      assert.deepEqual(await thoughtsOf({ hidesThinking: true, keepsSignatures: false }), []);
    }
  });
});
