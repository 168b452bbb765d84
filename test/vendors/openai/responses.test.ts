import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it } from 'node:test';
import fc from 'fast-check';
import OpenAI from 'openai';
import type { Response } from 'openai/resources/responses/responses';
import { ownItemId } from '../../../shared/capabilities/response.ts';
import { createOpenAiDialect } from '../../../workers/vendors/openai/dialect.ts';
import type { FrameSink, Offering, VendorCall } from '../../../workers/vendors/vendor.ts';
import {
  callOf,
  collect,
  cut,
  type FixtureVendor,
  sendJson,
  sendStream,
  startFixtureVendor,
} from '../contracts/fixture-vendor.ts';
import {
  type RecordedResponse,
  recorded,
  responseObject,
  responses,
  usage,
  wireEvents,
  written,
} from '../recorded/recorded-responses.ts';

const apiKey = 'sk-test-0123456789abcdef';
const jobId = '0199a1b2c3d4e5f60718293a4b5c6d7e';
const request = '{"input":[{"role":"user","content":"Hello!"}],"temperature":0.5,"something_new":{}}';

const call = (more: Partial<VendorCall> = {}) => callOf({ model: 'gpt-5.4', request, ...more });
const held = (response: RecordedResponse) =>
  responseObject(response.status, {
    output: response.output,
    usage,
    incomplete_details: response.incompleteDetails ?? null,
  });
const endOf = ({ status, incompleteDetails }: RecordedResponse, more: object = {}) => ({
  response: { status, incomplete_details: incompleteDetails ?? null, ...more, service_tier: 'default', usage },
});

describe('responses of the OpenAI dialect', () => {
  let server: FixtureVendor;
  let vendor: Offering<'respond'>;
  before(async () => {
    server = await startFixtureVendor();
    vendor = createOpenAiDialect({ name: 'openai', baseUrl: server.baseUrl, apiKey });
  });
  beforeEach(() => {
    server.requests.length = 0;
  });
  after(async () => {
    await vendor.close();
    await server.close();
  });

  const answerStream = (...parts: (string | Uint8Array)[]) => server.answer((response) => sendStream(response, parts));

  for (const [name, response] of Object.entries(responses)) {
    it(`OpenAI's own client reads the recording of ${name} as intended`, async () => {
      const client = new OpenAI({ baseURL: server.baseUrl, apiKey, maxRetries: 0 });
      answerStream(written(wireEvents(response)));
      const stream = client.responses.stream({ model: 'gpt-5.4', input: 'Hello!' });
      const types: string[] = [];
      for await (const { type } of stream) types.push(type);
      assert.deepEqual(
        types,
        wireEvents(response).map(({ type }) => type),
      );
      const streamed: Response = await stream.finalResponse();
      assert.equal(streamed.status, response.status);
      assert.deepEqual(
        streamed.output.map(({ id }) => id),
        response.output.map(({ id }) => id),
      );
      server.answer((answer) => sendJson(answer, 200, JSON.stringify(held(response))));
      const whole = await client.responses.create({ model: 'gpt-5.4', input: 'Hello!' });
      assert.deepEqual(whole.output, response.output);
    });

    it(`native responses stream ${name} as delta frames, and end without the items`, async () => {
      answerStream(written(wireEvents(response)));
      const sink = collect();
      const end = await vendor.respond(call(), sink);
      assert.deepEqual(sink.data(), response.events);
      assert.deepEqual(new Set(sink.frames.map(({ type }) => type)), new Set(['delta']));
      assert.deepEqual(JSON.parse(end.body), endOf(response));
      assert.deepEqual(end.usage, usage);
    });

    it(`native responses answer ${name}, held, with its items and no frame`, async () => {
      server.answer((answer) => sendJson(answer, 200, JSON.stringify(held(response))));
      const sink = collect();
      const end = await vendor.respond(call({ stream: false }), sink);
      assert.equal(sink.frames.length, 0);
      assert.deepEqual(JSON.parse(end.body), endOf(response, { output: response.output }));
      assert.deepEqual(end.usage, usage);
    });
  }

  it('native responses yield the same frames however the bytes of an answer are split', async () => {
    const names = fc.constantFrom(...Object.keys(responses));
    const lineEnd = fc.constantFrom('\n', '\r\n', '\r');
    const places = fc.array(fc.nat(), { maxLength: 40 });
    const tail = fc.constantFrom('', 'data: [DONE]\n\n');
    await fc.assert(
      fc.asyncProperty(names, lineEnd, places, tail, async (name, end, at, last) => {
        const text = (written(wireEvents(recorded(name))) + last).replaceAll('\n', end);
        answerStream(...cut(Buffer.from(text), at));
        const sink = collect();
        const answer = await vendor.respond(call(), sink);
        assert.deepEqual(sink.data(), recorded(name).events);
        assert.deepEqual(JSON.parse(answer.body), endOf(recorded(name)));
      }),
      { numRuns: 150 },
    );
  });

  it('native responses hold the vendor back while the relay is full, and lose nothing', async () => {
    const response = recorded('plain text');
    answerStream(...wireEvents(response).map((event) => written([event])));
    const sink = collect();
    let waits = 0;
    const slow: FrameSink = {
      write: (frame) => sink.write(frame) && false,
      drained: async () => {
        waits += 1;
      },
    };
    await vendor.respond(call(), slow);
    assert.deepEqual(sink.data(), response.events);
    assert.ok(waits > 1, `${waits}`);
  });

  it('native responses pass unknown events on, but none that are not about the response', async () => {
    const [created, begun, ...rest] = wireEvents(recorded('plain text')) as Record<string, unknown>[];
    const unheard = { type: 'response.hologram.delta', sequence_number: 2, item_id: 'holo_1', deep: { er: 1e-7 } };
    const alive = { type: 'keepalive', sequence_number: 3 };
    answerStream(written([created, begun, unheard, alive, ...rest] as Record<string, unknown>[]));
    const sink = collect();
    await vendor.respond(call(), sink);
    const { sequence_number: _, ...shown } = unheard;
    assert.deepEqual(sink.data(), [shown, ...recorded('plain text').events]);
  });

  it("native responses end an item that an incomplete response left open with the vendor's last state of it", async () => {
    const { events, output } = recorded('an end by the limit of tokens');
    const cutShort: RecordedResponse = {
      ...recorded('an end by the limit of tokens'),
      events: events.slice(0, 4),
    };
    answerStream(written(wireEvents(cutShort)));
    const sink = collect();
    await vendor.respond(call(), sink);
    const ended = { type: 'response.output_item.done', output_index: 0, item: output[0] };
    assert.deepEqual(sink.data(), [...events.slice(0, 4), ended]);
  });

  it('native responses have all items of a stream that announces none of them, or not all', async () => {
    const { events, output, ...rest } = recorded('plain text');
    const said = { type: 'message', id: 'msg_more', role: 'assistant', status: 'completed', content: [] };
    const isOfItem = ({ type }: { type?: unknown }): boolean =>
      !/^response\.(created|in_progress|completed)$/.test(String(type));
    const bare = wireEvents({ ...rest, events, output }).filter((event) => !isOfItem(event));
    answerStream(written(bare));
    const none = collect();
    const answer = await vendor.respond(call(), none);
    assert.deepEqual(none.data(), []);
    assert.deepEqual(JSON.parse(answer.body).response.output, output);

    answerStream(written(wireEvents({ ...rest, events, output: [...output, said] })));
    const some = collect();
    const end = await vendor.respond(call(), some);
    const position = { output_index: output.length, item: said };
    assert.deepEqual(some.data(), [
      ...events,
      { type: 'response.output_item.added', ...position },
      { type: 'response.output_item.done', ...position },
    ]);
    assert.equal(JSON.parse(end.body).response.output, undefined);
  });

  it("native responses keep the vendor's other response fields, and none that the request or the gateway sets", async () => {
    const more = { usage: null, output: [], moderation: { flagged: false }, unheard: [1] };
    server.answer((answer) => sendJson(answer, 200, JSON.stringify(responseObject('completed', more))));
    const end = await vendor.respond(call({ stream: false }), collect());
    assert.deepEqual(JSON.parse(end.body), {
      response: { status: 'completed', incomplete_details: null, service_tier: 'default', ...more },
    });
    assert.equal(end.usage, null);
  });

  it('native responses accept events that hold whole images', async () => {
    const picture = 'iVBORw0K'.repeat(1_200_000);
    const partial = {
      type: 'response.image_generation_call.partial_image',
      item_id: 'ig_1',
      partial_image_b64: picture,
    };
    const events = wireEvents(recorded('plain text'));
    answerStream(written([partial, ...events]));
    const sink = collect();
    await vendor.respond(call(), sink);
    assert.equal((sink.data()[0] as typeof partial).partial_image_b64.length, picture.length);
    assert.equal(sink.frames.length, 1 + recorded('plain text').events.length);
  });

  const asked = async (text: string, stream = true): Promise<Record<string, unknown>> => {
    server.answer((answer) => {
      if (stream) sendStream(answer, [written(wireEvents(recorded('plain text')))]);
      else sendJson(answer, 200, JSON.stringify(held(recorded('plain text'))));
    });
    await vendor.respond(call({ model: 'a/"b"', request: text, stream }), collect());
    const received = server.requests.at(-1);
    assert.equal(received?.method, 'POST');
    assert.equal(received?.url, '/v1/responses');
    assert.equal(received?.headers.authorization, `Bearer ${apiKey}`);
    return JSON.parse(received?.body ?? '');
  };
  const fixed = { model: 'a/"b"', store: false, include: ['reasoning.encrypted_content'] };

  it('native responses send store: false and include encrypted reasoning, and pass the rest of the request unread', async () => {
    assert.deepEqual(await asked(request), { ...fixed, stream: true, ...JSON.parse(request) });
    assert.deepEqual(await asked(request, false), { ...fixed, ...JSON.parse(request) });
    const spaced = '{ "input" : [],\n"metadata": {"n":  1} }';
    await asked(spaced);
    assert.ok(server.requests.at(-1)?.body.endsWith('"input" : [],\n"metadata": {"n":  1} }'));
  });

  it("native responses extend the caller's include, and never send the fields that the gateway handles", async () => {
    const sent = await asked(
      JSON.stringify({
        input: [],
        include: ['message.output_text.logprobs', 'reasoning.encrypted_content'],
        ...{ store: true, background: true, previous_response_id: 'resp_1', top_p: 0.1 },
      }),
    );
    const include = ['message.output_text.logprobs', 'reasoning.encrypted_content'];
    assert.deepEqual(sent, { ...fixed, stream: true, include, input: [], top_p: 0.1 });
    assert.deepEqual((await asked('{"input":[],"include":null}')).include, fixed.include);
    // As deep as it may stand, `include` is only looked for, not taken from elsewhere.
    const tools = [{ type: 'function', name: 'f', parameters: { properties: { include: { type: 'string' } } } }];
    assert.deepEqual(await asked(JSON.stringify({ input: [], tools })), { ...fixed, stream: true, input: [], tools });
  });

  it("native responses send earlier items under the vendor's ids, and leave every other text unchanged", async () => {
    const own = (id: string) => ownItemId(id, jobId);
    const said = { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: own('msg_1') }] };
    const items = (name: (id: string) => string) => [
      { ...said, id: name('msg_67c9fdcf37fc8190') },
      { type: 'reasoning', id: name('rs_67'), summary: [], encrypted_content: 'gAAA' },
      { type: 'reasoning', id: name('rs_0c'), summary: [], content: [{ type: 'reasoning_text', text: 'Hm' }] },
      { type: 'function_call', id: name('fc_1e'), call_id: own('call_1'), name: 'f', arguments: '{"id":"x"}' },
      { type: 'mcp_approval_response', approval_request_id: name('mcpr_1'), approve: true },
    ];
    const foreign = [
      { type: 'message', role: 'user', content: `"id":"${own('msg_1')}"` },
      { type: 'message', role: 'assistant', id: 'msg_foreign', content: [] },
      { type: 'reasoning', id: 'rs_foreign', summary: [] },
    ];
    const empty = [
      { type: 'reasoning', id: own('rs_9'), summary: [{ type: 'summary_text', text: 'Hm' }] },
      { type: 'reasoning', id: own('rs_8'), summary: [], encrypted_content: null, content: [] },
    ];
    const text = JSON.stringify({ input: [...items(own), ...foreign, ...empty], metadata: { id: own('msg_1') } });
    assert.deepEqual(await asked(text), {
      ...{ ...fixed, stream: true, metadata: { id: own('msg_1') } },
      input: [...items((id) => id), ...foreign],
    });
  });

  it("native responses tell items of several chats apart by whole ids, and leave those chats' reasoning out", async () => {
    const turn = (job: string) => [
      { type: 'message', role: 'assistant', id: ownItemId('msg_1', job), content: 'Hm.' },
      { type: 'function_call', id: ownItemId('fc_2', job), call_id: `call_${job}`, name: 'f', arguments: '{}' },
      { type: 'custom_tool_call', id: ownItemId('ctc_3', job), call_id: `own_${job}`, name: 'g', input: '' },
    ];
    const thought = { type: 'reasoning', id: ownItemId('rs_0', jobId), summary: [] };
    const content = [{ type: 'reasoning_text', text: 'Hm' }];
    const turns = [jobId, '0'.repeat(32)].flatMap(turn);
    const user = { type: 'message', role: 'user', content: 'Hi.' };
    // Its caller had not given it an id.
    const listed = { ...user, id: ownItemId('msg_in0', jobId) };
    const { input } = await asked(JSON.stringify({ input: [{ ...thought, content }, ...turns, listed] }));
    assert.deepEqual(input, [...turns, user]);
  });
});
