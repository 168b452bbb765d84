import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type OpenAI from 'openai';
import { zodTextFormat } from 'openai/helpers/zod';
import { z } from 'zod';
import { assertErrorAnswer } from '../../support/error-answers.ts';
import { TestGateway } from '../../support/gateway.ts';
import { saidInResponse } from '../../support/said-in-response.ts';
import { sseEvents } from '../../support/sse-events.ts';

type Create = OpenAI.Responses.ResponseCreateParams;
type Response = OpenAI.Responses.Response;
/** Fields of a request; the client's types do not know all that agents send. */
type Fields = Readonly<Record<string, unknown>>;

let gateway: TestGateway;
let client: OpenAI;
before(async () => {
  gateway = await TestGateway.start();
  client = gateway.client();
});
after(() => gateway.stop());

const weather = {
  type: 'function',
  name: 'get_weather',
  description: 'Tells the weather',
  strict: false,
  parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
} as const;
const stock = { ...weather, name: 'find_stock', parameters: { type: 'object', properties: {} } } as const;
const shell = { type: 'custom', name: 'shell', description: 'Runs a command' } as const;
const desk = { type: 'namespace', name: 'desk', description: 'Office work', tools: [stock] } as const;

const post = (body: unknown) => gateway.fetch('/v1/responses', { method: 'POST', body: JSON.stringify(body) });

async function assertRefused(answer: globalThis.Response, param: string): Promise<void> {
  assert.equal((await assertErrorAnswer(answer, 400, 'invalid_request_error')).param, param);
}

// The same behaviour whether the vendor has the Responses API or a chat stands in for it.
for (const model of ['sandbox-chat', 'sandbox-reasoning', 'sandbox-responses']) {
  const held = async (input: Create['input'], more: Fields = {}): Promise<Response> =>
    (await client.responses.create({ model, input, ...more } as never)) as Response;

  /** All events of a stream, held against a fold of the test's own; answers the last one's response. */
  async function streamed(input: Create['input'], more: Fields = {}): Promise<{ response: Response; types: string[] }> {
    const stream = await client.responses.create({
      ...({ model, input, ...more } as OpenAI.Responses.ResponseCreateParamsNonStreaming),
      stream: true,
    });
    const events: OpenAI.Responses.ResponseStreamEvent[] = [];
    for await (const event of stream) events.push(event);
    return { response: saidInResponse(events).response, types: events.map(({ type }) => type) };
  }

  const calls = ({ output }: Response) => output.filter((item) => item.type === 'function_call');

  describe(`POST /v1/responses of ${model}`, () => {
    it(`POST /v1/responses with ${model} answers a string or items, with every field of the object`, async () => {
      const response = await held('Reply with exactly: hello', { metadata: { a: 'b' }, temperature: 0.5 });
      assert.equal(response.output_text, 'hello');
      assert.match(response.id, /^resp_[0-9a-f]{32}$/);
      const { output: _, id: __, ...rest } = response;
      assert.deepEqual(
        [rest.object, rest.status, rest.model, rest.error, rest.incomplete_details, rest.instructions],
        ['response', 'completed', model, null, null, null],
      );
      assert.deepEqual(
        [rest.metadata, rest.temperature, rest.top_p, rest.tools, rest.tool_choice, rest.parallel_tool_calls],
        [{ a: 'b' }, 0.5, 1, [], 'auto', true],
      );
      assert.deepEqual([(rest as Fields).store, rest.background, rest.truncation], [true, false, 'disabled']);
      const { input_tokens: input, output_tokens: output, total_tokens: total } = rest.usage ?? assert.fail('no usage');
      assert.ok(input > 0 && output > 0);
      assert.equal(total, input + output);
      assert.ok(Math.abs((rest.completed_at ?? 0) - Date.now() / 1000) < 60);
      const items: Create['input'] = [
        { role: 'user', content: 'Hi' },
        { role: 'assistant', content: 'Hello' },
        { role: 'user', content: [{ type: 'input_text', text: 'Reply with exactly: items' }] },
      ];
      assert.equal((await held(items)).output_text, 'items');
    });

    it(`POST /v1/responses with ${model} streams the held answer in the order of OpenAI events, and ends with [DONE]`, async () => {
      const whole = await held('Reply with exactly: one two three');
      const { response, types } = await streamed('Reply with exactly: one two three');
      const text = (items: Response['output']) =>
        items.map((item) => (item.type === 'message' ? item.content : item.type));
      assert.deepEqual(text(response.output), text(whole.output));
      assert.ok(types.filter((type) => type === 'response.output_text.delta').length > 1, 'the text comes in pieces');
      const order = [
        ...['response.created', 'response.in_progress'],
        ...['response.output_item.added', 'response.content_part.added', 'response.output_text.delta'],
        ...['response.output_text.done', 'response.content_part.done', 'response.output_item.done'],
        'response.completed',
      ];
      const message = types.lastIndexOf('response.output_item.added');
      const seen = [...types.slice(0, 2), ...types.slice(message)];
      assert.deepEqual(
        seen.filter((type, index) => type !== seen[index - 1]),
        order,
      );
      const raw = await (await post({ model, input: 'Hi', stream: true })).text();
      assert.match(raw, /^event: response\.created\ndata: \{"type":"response\.created","sequence_number":0,/);
      assert.ok(raw.endsWith('data: [DONE]\n\n'));
    });

    it(`POST /v1/responses with ${model} streams to the helper of the OpenAI client`, async () => {
      const stream = client.responses.stream({ model, input: 'Reply with exactly: helper' });
      assert.equal((await stream.finalResponse()).output_text, 'helper');
    });

    it(`POST /v1/responses with ${model} obeys instructions and max_output_tokens, and is incomplete at the limit`, async () => {
      const words = Array.from({ length: 60 }, (_, index) => `word${index}`).join(' ');
      for (const response of [
        await held(`Reply with exactly: ${words}`, { max_output_tokens: 16 }),
        (await streamed(`Reply with exactly: ${words}`, { max_output_tokens: 16 })).response,
      ]) {
        assert.equal(response.status, 'incomplete');
        assert.deepEqual(response.incomplete_details, { reason: 'max_output_tokens' });
        assert.equal(response.max_output_tokens, 16);
        const last = response.output.at(-1);
        assert.equal(last === undefined ? 'incomplete' : 'status' in last && last.status, 'incomplete');
      }
      assert.equal((await held('Hi', { instructions: 'Be brief' })).instructions, 'Be brief');
    });

    it(`POST /v1/responses with ${model} calls one or several functions, and passes on their outputs`, async () => {
      const asked = 'TOOL:get_weather {"city":"Zürich \\"x\\""}';
      const first = await held(asked, { tools: [weather] });
      const [call, ...others] = calls(first);
      assert.deepEqual(
        [call?.name, call?.arguments, call?.status],
        ['get_weather', '{"city":"Zürich \\"x\\""}', 'completed'],
      );
      assert.deepEqual(others, []);
      const { response, types } = await streamed(asked, { tools: [weather] });
      assert.deepEqual(
        calls(response).map(({ name, arguments: given }) => [name, given]),
        [[call?.name, call?.arguments]],
      );
      assert.ok(types.filter((type) => type === 'response.function_call_arguments.delta').length > 1);
      const output = [{ type: 'function_call_output', call_id: call?.call_id ?? '', output: 'It rains.' }] as const;
      const next = await held([{ role: 'user', content: asked }, ...(first.output as object[]), ...output] as never, {
        tools: [weather],
      });
      assert.match(next.output_text, /It rains\./);
      const both = 'TOOL:get_weather {"city":"a"} TOOL:find_stock {"symbol":"b"}';
      for (const parallel of [
        await held(both, { tools: [weather, stock] }),
        (await streamed(both, { tools: [weather, stock] })).response,
      ]) {
        assert.deepEqual(
          calls(parallel).map(({ name, arguments: given }) => [name, given]),
          [
            ['get_weather', '{"city":"a"}'],
            ['find_stock', '{"symbol":"b"}'],
          ],
        );
      }
      assert.deepEqual(calls(await held('How is the weather?', { tools: [weather], tool_choice: 'none' })), []);
      const forced = { tools: [weather, stock], tool_choice: { type: 'function', name: 'find_stock' } } as const;
      assert.deepEqual(
        calls(await held('Hello', forced)).map(({ name }) => name),
        ['find_stock'],
      );
    });

    it(`POST /v1/responses with ${model} calls custom tools with free text`, async () => {
      const more = { tools: [shell], tool_choice: { type: 'custom', name: 'shell' } } as const;
      for (const { output, tools } of [await held('Run it', more), (await streamed('Run it', more)).response]) {
        assert.deepEqual(tools, [{ ...shell, format: { type: 'text' } }]);
        const call = output.find((item) => item.type === 'custom_tool_call') ?? assert.fail('no call');
        assert.equal(call.name, 'shell');
        assert.equal(typeof call.input, 'string');
        const items = [
          { role: 'user', content: 'Run it' },
          call,
          { type: 'custom_tool_call_output', call_id: call.call_id, output: 'done 42' },
        ];
        assert.match((await held(items as never, { tools: [shell] })).output_text, /done 42/);
      }
    });

    it(`POST /v1/responses with ${model} answers in the requested text format`, async () => {
      const shape = z.object({ city: z.string(), degrees: z.number() });
      const parsed = await client.responses.parse({
        ...{ model, input: 'The weather, please' },
        text: { format: zodTextFormat(shape, 'weather') },
      });
      assert.equal(typeof parsed.output_parsed?.city, 'string');
      assert.equal(parsed.text?.format?.type, 'json_schema');
      JSON.parse((await held('JSON please', { text: { format: { type: 'json_object' } } })).output_text);
    });

    it(`POST /v1/responses with ${model} returns log probabilities with include`, async () => {
      const more: Fields = { include: ['message.output_text.logprobs'], top_logprobs: 2 };
      const input = 'Reply with exactly: how likely';
      for (const { output } of [await held(input, more), (await streamed(input, more)).response]) {
        const [part] = output.flatMap((item) => (item.type === 'message' ? item.content : []));
        assert.ok(part?.type === 'output_text');
        assert.equal(part.logprobs?.map(({ token }) => token).join(''), 'how likely');
        assert.ok(part.logprobs?.every((entry) => entry.top_logprobs.length === 2));
      }
    });

    it(`POST /v1/responses with ${model} returns 400 naming the invalid field, held and streamed`, async () => {
      const bad: [object, string][] = [
        [{ input: undefined }, 'input'],
        [{ input: [{ role: 'user' }] }, 'input[0].content'],
        [{ temperature: 3 }, 'temperature'],
        [{ max_output_tokens: 1 }, 'max_output_tokens'],
        [{ tools: [{ type: 'function' }] }, 'tools[0].name'],
        [{ conversation: 'conv_1' }, 'conversation'],
        [{ background: true, store: false }, 'background'],
      ];
      for (const [fields, param] of bad) {
        for (const stream of [false, true]) {
          const answer = await post({ model, input: 'Hi', stream, ...fields });
          await assertRefused(answer, param);
        }
      }
    });

    it(`POST /v1/responses with ${model} returns a status for an early error, and response.failed for a late one`, async () => {
      const early = await post({
        model,
        input: 'Hi',
        stream: true,
        sandbox: { fault: { kind: 'error', status: 400 } },
      });
      assert.equal(early.status, 400);
      const fault = { kind: 'reset', after_tokens: 2 };
      const late = await post({ model, input: 'Reply with exactly: a b c d e f', stream: true, sandbox: { fault } });
      assert.equal(late.status, 200);
      const text = await late.text();
      const last = JSON.parse(sseEvents(text).at(-1)?.data ?? '');
      assert.equal(last.type, 'response.failed');
      assert.equal(last.response.status, 'failed');
      assert.equal(last.response.error.code, 'server_error');
      assert.ok(!text.includes('[DONE]'));
    });

    it(`POST /v1/responses with ${model} has OpenAI's client throw for a late error, so that no cut answer passes for a whole one`, async () => {
      const fault = { kind: 'reset', after_tokens: 2 };
      const cut = streamed('Reply with exactly: a b c d e f', { sandbox: { fault } });
      await assert.rejects(cut, { name: 'Error', code: 'stream_interrupted' });
    });

    it(`POST /v1/responses with ${model} and Prefer: wait=N returns the response in time, with its job events`, async () => {
      const body = JSON.stringify({ model, input: 'Reply with exactly: later' });
      const accepted = await gateway.fetch('/v1/responses', {
        method: 'POST',
        body,
        headers: { prefer: 'respond-async, wait=20' },
      });
      const response = (await accepted.json()) as Response;
      assert.equal(accepted.status, 200);
      assert.equal(response.status, 'completed');
      const events = await (await gateway.fetch(`/v1/jobs/${response.id}/events`)).text();
      assert.match(events, /event: response\.completed\n/);
      assert.ok(events.endsWith('data: [DONE]\n\n'));
    });
  });
}

describe('POST /v1/responses over a chat model', () => {
  it('POST /v1/responses over a chat model returns reasoning as an item, with text or a summary', async () => {
    const ask = async (more: Fields): Promise<Response['output']> =>
      ((await client.responses.create({ model: 'sandbox-reasoning', input: 'Think', ...more } as never)) as Response)
        .output;
    const [text] = await ask({});
    assert.ok(text?.type === 'reasoning');
    assert.deepEqual([text.summary, text.content?.[0]?.type], [[], 'reasoning_text']);
    const [summary] = await ask({ reasoning: { summary: 'auto' } });
    assert.ok(summary?.type === 'reasoning');
    assert.equal(summary.summary[0]?.type, 'summary_text');
    assert.match(summary.id, /^rs_0_[0-9a-f]{32}$/);
  });

  it('POST /v1/responses over a chat model calls tools of a namespace with its name', async () => {
    const more = { model: 'sandbox-chat', input: 'Hello', tools: [desk], tool_choice: 'required' };
    const held = (await client.responses.create(more as never)) as Response;
    const streamed = await client.responses.stream(more as never).finalResponse();
    for (const { output } of [held, streamed]) {
      const [call] = output;
      assert.ok(call?.type === 'function_call');
      assert.deepEqual([call.name, call.namespace], ['find_stock', 'desk']);
    }
  });

  it('POST /v1/responses over a chat model names ignored tools and hints, and refuses a choice of one', async () => {
    const tools = [weather, { type: 'web_search', external_web_access: true }];
    const answer = await post({ model: 'sandbox-chat', input: 'Hi', tools, client_metadata: { a: 'b' } });
    assert.equal(answer.status, 200);
    assert.equal(answer.headers.get('x-sluice-ignored'), 'client_metadata, web_search');
    const choice = { type: 'web_search_preview' };
    const refused = await post({ model: 'sandbox-chat', input: 'Hi', tools, tool_choice: choice });
    await assertRefused(refused, 'tool_choice');
    const whole = await post({ model: 'sandbox-chat', input: 'Hi', truncation: 'auto' });
    assert.deepEqual([whole.status, whole.headers.get('x-sluice-ignored')], [200, 'truncation']);
  });

  it('POST /v1/responses returns 400 naming model for a native completions model', async () => {
    const answer = await post({ model: 'sandbox-instruct', input: 'Hi' });
    await assertRefused(answer, 'model');
  });
});
