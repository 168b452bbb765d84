import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { foldChatCompletion } from '../../../api/endpoints/chat/fold-chat-completion.ts';
import { messages } from '../../../api/endpoints/messages/messages.ts';
import { parseMessages } from '../../../api/endpoints/messages/parse-messages.ts';
import { parseResponse } from '../../../api/endpoints/responses/parse-response.ts';
import { responseView } from '../../../api/endpoints/responses/response-view.ts';
import type { ParsedRequest } from '../../../api/pipeline/parsed-request.ts';
import { textOf } from '../../../api/pipeline/request-text.ts';
import type { View } from '../../../api/replies/view.ts';
import { executeChat } from '../../../workers/execute/execute.ts';
import { CallSignatures } from '../../../workers/vendors/openai/reasoning-details.ts';
import { createVendor } from '../../../workers/vendors/registry.ts';
import type { Offering } from '../../../workers/vendors/vendor.ts';
import { madeUpModel } from '../../support/routed-model.ts';
import { throughLog } from '../../support/through-log.ts';
import { vendorSettings } from '../../support/vendor-settings.ts';
import { callOf, collect, sendJson, sendStream } from '../contracts/fixture-vendor.ts';
import { VendorBench } from '../contracts/vendor-bench.ts';
import { chunk, events } from '../recorded/recorded-openai.ts';

type Fields = Record<string, unknown>;

const apiKey = 'sk-or-test-0123456789abcdef';
const signature = 'CsUBAdHtim9xSluice/+==';
const signed = { extra_content: { google: { thought_signature: signature } } };
const detail = { type: 'reasoning.encrypted', data: signature, id: 'tool_0_f', format: 'google-gemini-v1', index: 0 };
const thought = { type: 'reasoning.text', text: 'Hm.', format: 'google-gemini-v1', index: 0 };
const callOfTool = (id: string): Fields => ({ id, type: 'function', function: { name: 'f', arguments: '{}' } });
const calls = [callOfTool('tool_0_f'), callOfTool('tool_1_f')];
const called = { tool_calls: calls.map((call, index) => ({ index, ...call })) };
const details = { reasoning_details: [thought, detail] };
/** The deltas of a stream: the signature comes before its call, with it, or after it. */
const orders: readonly (readonly Fields[])[] = [[details, called], [{ ...details, ...called }], [called, details]];

describe("Google's signatures of calls at OpenRouter", () => {
  const bench = new VendorBench(
    (baseUrl) => createVendor('openrouter', vendorSettings('openrouter', baseUrl, apiKey), apiKey) as Offering<'chat'>,
  );
  const answerWith = (deltas: readonly Fields[]): void => {
    const chunks = deltas.map((delta) => chunk([{ delta }]));
    const end = chunk([{ delta: {}, finish_reason: 'tool_calls' }]);
    bench.server.answer((response) => sendStream(response, [events([...chunks, end])]));
  };
  const sentDetails = (): unknown =>
    (bench.posted as { messages: Fields[] }).messages.find(({ role }) => role === 'assistant')?.reasoning_details;
  const callsIn = ({ choices }: Fields): unknown => (choices as { message: Fields }[])[0]?.message.tool_calls;

  it('a signature is a field of its call, whole and streamed, whether it comes before, with or after the call', async () => {
    const expected = [{ ...calls[0], ...signed }, calls[1]];
    const message = { role: 'assistant', content: null, reasoning_details: [thought, detail], tool_calls: calls };
    bench.server.answer((response) =>
      sendJson(response, 200, JSON.stringify({ choices: [{ index: 0, message, finish_reason: 'tool_calls' }] })),
    );
    const held = await bench.vendor.chat(callOf({ stream: false }), collect());
    assert.deepEqual(callsIn(JSON.parse(held.body)), expected);
    for (const deltas of orders) {
      answerWith(deltas);
      const sink = collect();
      await bench.vendor.chat(callOf(), sink);
      assert.deepEqual(callsIn(foldChatCompletion(throughLog(sink.frames, [1]))), expected, JSON.stringify(deltas));
    }
  });

  it('a signature that comes back with its call is where OpenRouter looks for it, unless the caller has kept the details', async () => {
    bench.server.answer((response) =>
      sendJson(response, 200, JSON.stringify({ choices: [{ message: { content: 'x' }, finish_reason: 'stop' }] })),
    );
    const sentFor = async (more: Fields): Promise<unknown> => {
      const messages = [
        { role: 'user', content: 'Go.' },
        { role: 'assistant', content: null, tool_calls: [calls[1], { ...calls[0], ...signed }], ...more },
        { role: 'tool', tool_call_id: 'tool_0_f', content: 'a' },
      ];
      await bench.vendor.chat(callOf({ stream: false, request: JSON.stringify({ messages }) }), collect());
      return sentDetails();
    };
    assert.deepEqual(await sentFor({}), [{ ...detail, index: 1 }]);
    assert.deepEqual(await sentFor({ reasoning_details: [thought, detail] }), [thought, detail]);
    assert.equal(await sentFor({ tool_calls: calls }), undefined);
  });

  it("a conversation whose signatures OpenRouter's Gemini refuses or misses is sent once more with the one for foreign calls", async () => {
    const own = { role: 'assistant', content: null, tool_calls: calls };
    const user = { role: 'user', content: 'Go.' };
    const foreign = { ...detail, data: 'skip_thought_signature_validator' };
    const refusal = (raw: string): string =>
      JSON.stringify({ error: { message: 'Provider returned error', code: 400, metadata: { raw } } });
    const corrupted = refusal('{"error":{"code":400,"message":"Corrupted thought signature."}}');
    const missing = refusal(
      'Gemini models require details. Upstream error: Function call is missing a thought_signature in it.',
    );
    const cases: [string, Fields, Fields][] = [
      [corrupted, { ...own, tool_calls: [{ ...calls[0], ...signed }, calls[1]] }, own],
      [corrupted, { ...own, ...details }, own],
      [missing, own, own],
      [missing, { ...own, reasoning_details: [thought] }, own],
    ];
    for (const [text, message, expected] of cases) {
      bench.server.requests.length = 0;
      bench.server.answer((response, { body }) => {
        const isTaken = body.includes('skip_thought');
        const end = JSON.stringify({ choices: [{ message: { content: 'x' }, finish_reason: 'stop' }] });
        sendJson(response, isTaken ? 200 : 400, isTaken ? end : text);
      });
      const request = JSON.stringify({ messages: [user, message, user] });
      await bench.vendor.chat(callOf({ stream: false, request }), collect());
      const [, sent] = (bench.posted as { messages: Fields[] }).messages;
      const { tool_calls: sentCalls, ...rest } = sent ?? {};
      assert.deepEqual(rest, { role: 'assistant', content: null, reasoning_details: [foreign] });
      assert.equal((sentCalls as Fields[]).length, (expected.tool_calls as Fields[]).length);
      assert.equal(bench.server.requests.length, 2);
    }
    bench.server.answer((response) => sendJson(response, 400, missing));
    const request = JSON.stringify({ messages: [user, own, user] });
    await assert.rejects(bench.vendor.chat(callOf({ request }), collect()), { code: 'invalid_request_error' });
  });

  it('a hundred thousand calls are signed, all at once or each in an event of its own', () => {
    const count = 100_000;
    const detailOf = (id: string): Fields => ({ ...detail, id });
    const ids = Array.from({ length: count }, (_, at) => `call_${at}`);
    const message: Fields = { reasoning_details: ids.map(detailOf).reverse(), tool_calls: ids.map(callOfTool) };
    new CallSignatures().sign(message);
    assert.ok((message.tool_calls as Fields[]).every(({ extra_content: extra }) => extra !== undefined));
    const streamed = new CallSignatures();
    streamed.sign({ reasoning_details: ids.map(detailOf) });
    for (const id of [...ids].reverse()) {
      const delta: Fields = { tool_calls: [callOfTool(id)] };
      streamed.sign(delta);
      assert.deepEqual(delta.tool_calls, [{ ...callOfTool(id), ...signed }]);
    }
  });

  /** What a view shows of the streamed answer to a request. */
  const ask = async <Shown>(endpoint: string, view: View, parsed: ParsedRequest): Promise<Shown> => {
    const row = madeUpModel({ id: 'm', capability: 'chat' }, 'openrouter');
    const sink = collect();
    const call = callOf({ model: 'm', request: textOf(parsed.request) });
    const end = await executeChat({ vendor: bench.vendor, row, endpoint, keep: false, call, sink });
    const frames = throughLog([...sink.frames, { type: 'end', text: end.body }], [1]);
    const { viewOptions } = parsed;
    const job = { id: 'j'.repeat(32), model: 'm', createdAt: 0, viewOptions, link: (file: string) => file };
    return JSON.parse(view.held(job, frames));
  };

  it('a signature of OpenRouter goes through messages and through responses to their caller, and back', async () => {
    const body = (fields: object): Buffer => Buffer.from(JSON.stringify({ model: 'm', stream: true, ...fields }));
    const expected = [{ ...detail, index: 0 }];
    const user = { role: 'user', content: 'Go.' };
    for (const deltas of orders) {
      answerWith(deltas);
      const offered = { max_tokens: 100, tools: [{ name: 'f', input_schema: { type: 'object' } }] };
      const { content } = await ask<{ content: unknown }>(
        'messages',
        messages.view,
        await parseMessages(body({ ...offered, messages: [user] })),
      );
      const results = calls.map(({ id }) => ({ type: 'tool_result', tool_use_id: id, content: 'a' }));
      const turns = [user, { role: 'assistant', content }, { role: 'user', content: results }];
      await ask('messages', messages.view, await parseMessages(body({ ...offered, messages: turns })));
      assert.deepEqual(sentDetails(), expected, JSON.stringify(content));

      const tools = [{ type: 'function', name: 'f', parameters: {} }];
      const { output } = await ask<{ output: Fields[] }>(
        'responses',
        responseView,
        await parseResponse(body({ tools, input: [user] })),
      );
      const items = output.map(({ id: _, status: __, ...item }) => item);
      const outputs = calls.map(({ id }) => ({ type: 'function_call_output', call_id: id, output: 'a' }));
      const input = [user, ...items, ...outputs];
      await ask('responses', responseView, await parseResponse(body({ tools, input })));
      assert.deepEqual(sentDetails(), expected, JSON.stringify(output));
    }
  });
});
