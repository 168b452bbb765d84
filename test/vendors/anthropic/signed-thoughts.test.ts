import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type Anthropic from '@anthropic-ai/sdk';
import fc from 'fast-check';
import { parseResponse } from '../../../api/endpoints/responses/parse-response.ts';
import { responseView } from '../../../api/endpoints/responses/response-view.ts';
import type { ParsedRequest } from '../../../api/pipeline/parsed-request.ts';
import type { ResponseItem } from '../../../shared/capabilities/response.ts';
import { carriesThought, readSignedThought, writeSignedThought } from '../../../shared/capabilities/signed-thought.ts';
import { writeThoughtSignature } from '../../../shared/capabilities/thought-signature.ts';
import type { Frame } from '../../../shared/jobs/append.ts';
import { executeChat } from '../../../workers/execute/execute.ts';
import { createAnthropic } from '../../../workers/vendors/anthropic/anthropic.ts';
import { composeResponseRequest } from '../../../workers/vendors/openai/response-request.ts';
import type { Offering } from '../../../workers/vendors/vendor.ts';
import { madeUpModel } from '../../support/routed-model.ts';
import { parseResponseEvents, saidInResponse } from '../../support/said-in-response.ts';
import { shownInEachForm } from '../../support/shown-in-each-form.ts';
import { throughLog } from '../../support/through-log.ts';
import {
  callOf,
  collect,
  type FixtureVendor,
  sendJson,
  sendStream,
  startFixtureVendor,
} from '../contracts/fixture-vendor.ts';
import { eventsOf, messageOf, text, thinking, toolUse, toWire } from '../recorded/recorded-anthropic.ts';

const model = 'claude-opus-4-8';
const row = madeUpModel({ id: model, capability: 'chat', chat: { hints: true, effort: true } }, 'anthropic');
const signature = 'EqQBCgIYAhIM1gbcDa9GJwZA2b3hGgxBdjrkzLoky3dl1pkiMOYds';
const redacted: Anthropic.RedactedThinkingBlock = { type: 'redacted_thinking', data: 'EmwKAhgBEgy3va3pzix/LafPsn4' };
const use = toolUse('toolu_1', 'get_weather', { city: 'Łódź' });

/** Turns that end with a call, all of which Claude is to get back. */
const turns: Readonly<Record<string, readonly Anthropic.ContentBlock[]>> = {
  'a thought and a call': [thinking('First the "weather".\n🦥', signature), use],
  'a thought, a text and two calls': [
    thinking('I need both.', signature),
    text('Let me look.'),
    use,
    toolUse('toolu_2', 'get_time', {}),
  ],
  'a thought that is not shown and a call': [thinking('', signature), use],
  'a redacted thought, a thought and a call': [redacted, thinking('First the weather.', signature), use],
  'a thought, a redacted one and a call': [thinking('First the weather.', signature), redacted, use],
  'two thoughts and a call': [thinking('First the weather.', signature), thinking('Then the time.', 'Eq:2'), use],
  'thoughts around a text': [
    thinking('First.', signature),
    text('Let me look.'),
    thinking('Then.', 'anthropic:3:abc'),
    use,
  ],
  'a text, a thought and a call': [text('Let me look.'), thinking('Then.', signature), use],
};

const withoutNulls = (blocks: readonly Anthropic.ContentBlock[]): object[] =>
  blocks.map(({ ...block }) => {
    const { citations: _, caller: __, ...sent } = block as unknown as Record<string, unknown>;
    return sent;
  });

describe("Claude's thoughts through responses", () => {
  let server: FixtureVendor;
  let vendor: Offering<'chat'>;
  before(async () => {
    server = await startFixtureVendor();
    vendor = createAnthropic({ name: 'anthropic', baseUrl: server.baseUrl, apiKey: 'sk-ant-test-0123456789' });
  });
  after(async () => {
    await vendor.close();
    await server.close();
  });

  const request = (more: object): ParsedRequest => {
    const offered = ['get_weather', 'get_time'].map((name) => ({ type: 'function', name, parameters: {} }));
    return parseResponse(Buffer.from(JSON.stringify({ model, input: 'Weather?', tools: offered, ...more })));
  };
  const execute = async ({ request: asked, stream }: ParsedRequest, by = model): Promise<Frame[]> => {
    const sink = collect();
    const call = callOf({ model: by, request: String(asked), stream });
    const end = await executeChat({ vendor, row, endpoint: 'responses', keep: false, call, sink });
    return throughLog([...sink.frames, { type: 'end', text: end.body }], [1]);
  };
  const ask = async (
    content: readonly Anthropic.ContentBlock[],
    stream: boolean,
    more: object = {},
  ): Promise<ResponseItem[]> => {
    const message = messageOf([...content], content.includes(use) ? 'tool_use' : 'end_turn');
    server.answer((response) => {
      if (server.requests.at(-1)?.body.includes('"stream":true')) sendStream(response, [toWire(eventsOf(message))]);
      else sendJson(response, 200, JSON.stringify(message));
    });
    const parsed = request({ stream, ...more });
    const job = { id: '0197a3b0c4d57e8f9a0b1c2d3e4f5a6b', model, createdAt: 1, viewOptions: parsed.viewOptions };
    const fold = async (texts: readonly string[]) => {
      const all = parseResponseEvents(texts);
      assert.equal(all.pop(), '[DONE]');
      return saidInResponse(all).response;
    };
    const frames = await execute(parsed);
    return (await shownInEachForm(responseView, { ...job, link: (file) => file }, frames, fold)).output;
  };
  /** The next turn, as Codex makes it: without ids and states, and without the text of reasoning. */
  const next = (output: readonly ResponseItem[], more: object = {}) =>
    request({
      ...more,
      input: [
        { role: 'user', content: 'Weather?' },
        ...output.map(({ id: _, status: __, ...item }) =>
          item.type === 'reasoning' ? { ...item, content: null } : item,
        ),
        ...output.flatMap(({ type, call_id: id }) =>
          type === 'function_call' ? [{ type: 'function_call_output', call_id: id, output: 'Rain.' }] : [],
        ),
      ],
    });
  const sentBlocks = (): unknown => {
    const { messages } = JSON.parse(server.requests.at(-1)?.body ?? assert.fail());
    return messages.find(({ role }: { role: string }) => role === 'assistant')?.content;
  };

  for (const [name, blocks] of Object.entries(turns)) {
    for (const stream of [true, false]) {
      it(`a thought returns to Claude through /v1/responses after ${name}, ${stream ? 'streamed' : 'held'}`, async () => {
        // Codex asks for encrypted reasoning only of models that it knows.
        for (const include of [[], ['reasoning.encrypted_content']]) {
          const output = await ask(blocks, stream, { include, reasoning: { effort: 'low', summary: 'auto' } });
          await execute(next(output));
          assert.deepEqual(sentBlocks(), withoutNulls(blocks));
        }
      });
    }
  }

  it('Claude thinks on after the result of a call through /v1/responses, when its thought returns', async () => {
    const output = await ask(turns['a thought and a call'] ?? assert.fail(), true);
    const thinkingAfter = async (items: readonly ResponseItem[]): Promise<unknown> => {
      await execute(next(items, { reasoning: { effort: 'high' } }), 'claude-haiku-4-5');
      return JSON.parse(server.requests.at(-1)?.body ?? assert.fail()).thinking;
    };
    assert.equal(await thinkingAfter(output.filter(({ type }) => type !== 'reasoning')), undefined);
    assert.deepEqual(await thinkingAfter(output), { type: 'enabled', budget_tokens: 16_384 });
  });

  it('a turn of thoughts alone is not sent to Claude, which refuses it', async () => {
    const [item] = await ask([redacted, text('Hm.')], true);
    await execute(request({ input: [{ role: 'user', content: 'a' }, item, { role: 'user', content: 'b' }] }));
    assert.equal(sentBlocks(), undefined);
  });

  it("a thought of Claude's is not sent to OpenAI, which reads only its own reasoning", async () => {
    for (const more of [{}, { reasoning: { summary: 'auto' } }]) {
      const output = await ask(turns['a redacted thought, a thought and a call'] ?? assert.fail(), true, more);
      const items = output.map(({ id: _, ...item }) => item);
      const { request: chat } = request({ input: [{ role: 'user', content: 'Weather?' }, ...items] });
      const sent = composeResponseRequest(callOf({ model: 'gpt-5', request: String(chat) }));
      assert.deepEqual(
        JSON.parse(sent).input.map(({ type }: ResponseItem) => type ?? 'message'),
        ['message', 'function_call'],
      );
    }
  });
});

it('readSignedThought reads what writeSignedThought wrote, and nothing else', () => {
  const said = fc.string({ unit: 'binary', maxLength: 40 });
  const some = fc.string({ unit: 'binary', minLength: 1, maxLength: 40 });
  const thought = fc.oneof(
    fc.record({ type: fc.constant('thinking' as const), thinking: said, signature: some }, { noNullPrototype: true }),
    fc.record({ type: fc.constant('redacted_thinking' as const), data: some }, { noNullPrototype: true }),
  );
  fc.assert(
    fc.property(thought, (given) => {
      assert.deepEqual(readSignedThought(writeSignedThought(given)), given);
      assert.ok(carriesThought(writeSignedThought(given)));
    }),
  );
  const foreign = ['', 'EqQBCgIYAhIM', 'anthropic:', 'anthropic:x:y', 'anthropic:0:', 'anthropic:redacted:', 7, null];
  for (const each of [...foreign, writeThoughtSignature({ signature: 'a' })]) {
    assert.equal(readSignedThought(each), undefined, String(each));
  }
});
