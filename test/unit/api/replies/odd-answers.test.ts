import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { chatCompletions } from '../../../../api/endpoints/chat/chat-completions.ts';
import { foldChatCompletion } from '../../../../api/endpoints/chat/fold-chat-completion.ts';
import { completions } from '../../../../api/endpoints/completions/completions.ts';
import { messages } from '../../../../api/endpoints/messages/messages.ts';
import { parseResponse } from '../../../../api/endpoints/responses/parse-response.ts';
import { responseView } from '../../../../api/endpoints/responses/response-view.ts';
import type { View } from '../../../../api/replies/view.ts';
import type { Frame } from '../../../../shared/jobs/append.ts';
import { executeChat } from '../../../../workers/execute/execute.ts';
import { createAnthropic } from '../../../../workers/vendors/anthropic/anthropic.ts';
import { createBedrock } from '../../../../workers/vendors/bedrock/bedrock.ts';
import { createOpenAiDialect } from '../../../../workers/vendors/openai/dialect.ts';
import { createOpenAiRow } from '../../../../workers/vendors/openai/row.ts';
import { madeUpModel } from '../../../support/routed-model.ts';
import { callOf, collect, sendJson } from '../../../vendors/contracts/fixture-vendor.ts';
import { VendorBench } from '../../../vendors/contracts/vendor-bench.ts';

type Fields = Record<string, unknown>;

const { viewOptions: responseOptions } = parseResponse(Buffer.from('{"model":"a-model","input":"Hi"}'));
const optionsOf = new Map<View, object>([
  [messages.view, { hidesThinking: false, stopSequences: [] }],
  [responseView, responseOptions],
]);
const held = (view: View, ...frames: Frame[]) =>
  JSON.parse(
    String(
      view.held(
        {
          id: '0197a3b0c4d57e8f9a0b1c2d3e4f5a6b',
          model: 'a-model',
          createdAt: 1_700_000_000_123,
          viewOptions: optionsOf.get(view) ?? {},
          link: (file: string) => file,
        } as never,
        frames,
      ),
    ),
  );
const end = (...choices: Fields[]): Frame => ({ seq: 1, type: 'end', text: JSON.stringify({ choices }) });
const delta = (seq: number, said: Fields): Frame => ({
  seq,
  type: 'delta',
  text: JSON.stringify({ choices: [{ index: 0, delta: said, finish_reason: null }] }),
});

describe('foldChatCompletion', () => {
  it('foldChatCompletion keeps the id, type and name of a tool call whose later pieces leave them empty', () => {
    const piece = (fields: Fields, body: Fields) => ({ tool_calls: [{ index: 0, ...fields, function: body }] });
    const folded = foldChatCompletion([
      delta(1, piece({ id: 'call_1', type: 'function' }, { name: 'weather', arguments: '' })),
      delta(2, piece({ id: '', type: '' }, { name: '', arguments: '{"a":' })),
      delta(3, piece({ id: null, type: null }, { name: null, arguments: '1}' })),
    ]) as { choices: { message: Fields }[] };
    assert.deepEqual(folded.choices[0]?.message.tool_calls, [
      { id: 'call_1', type: 'function', function: { name: 'weather', arguments: '{"a":1}' } },
    ]);
  });
});

describe('oddly shaped answers', () => {
  it('every view shows a held choice without a message', () => {
    const filtered = end({ index: 0, finish_reason: 'content_filter' });
    assert.equal(held(chatCompletions.view, filtered).choices[0].finish_reason, 'content_filter');
    assert.equal(held(messages.view, filtered).stop_reason, 'refusal');
    const response = held(responseView, filtered);
    assert.deepEqual([response.status, response.output], ['incomplete', []]);
  });

  it('every view of a chat shows the text beside what is no thought, no call and no annotation', () => {
    const odd = [null, 7, 'x', [], {}, { type: 'redacted_thinking', data: { toString: 1 } }, { thinking: { join: 1 } }];
    const said = { content: 'Ruby', thinking_blocks: odd, thinking_offsets: odd, tool_calls: odd, annotations: odd };
    for (const view of [messages.view, responseView, chatCompletions.view, completions.view]) {
      for (const frames of [[end({ index: 0, message: said })], [delta(1, said), { ...end(), seq: 2 }]] as const) {
        assert.match(JSON.stringify(held(view, ...frames)), /"(text|content)":"Ruby"/);
      }
    }
  });

  it('the view of messages shows the message of a whole answer that also has an empty delta', () => {
    const said = { message: { role: 'assistant', content: 'Ruby' }, delta: { role: 'assistant', content: '' } };
    const message = held(messages.view, end({ index: 0, ...said, finish_reason: 'stop' }));
    assert.deepEqual(message.content, [{ type: 'text', text: 'Ruby', citations: [] }]);
    const again = held(messages.view, delta(1, { role: 'assistant', content: 'Ruby' }), { ...end(), seq: 2 });
    assert.deepEqual(again.content, message.content);
  });

  describe('oddly shaped answers of a vendor', () => {
    const near = new VendorBench((baseUrl) => createOpenAiDialect({ name: 'near', baseUrl, apiKey: 'sk-test' }));
    const row = madeUpModel({ id: 'a-model', capability: 'chat' });

    it('a choice that a content filter emptied becomes an empty completion', async () => {
      near.server.answer((response) => sendJson(response, 200, '{"choices":[{"finish_reason":"content_filter"}]}'));
      const call = callOf({ stream: false, request: '{"prompt":"x"}' });
      const job = { vendor: near.vendor, row, endpoint: 'completions', keep: false, call, sink: collect() };
      const { body } = await executeChat(job);
      const [choice] = held(completions.view, { seq: 1, type: 'end', text: body }).choices;
      assert.deepEqual([choice.text, choice.finish_reason], ['', 'content_filter']);
    });

    it('a capability that the vendor does not offer is a 400 that names both, without a retry', async () => {
      const vendor = createOpenAiRow({
        name: 'mute',
        baseUrl: near.server.baseUrl,
        apiKey: 'sk-test',
        row: { offers: ['embed'] },
      });
      const job = { vendor, row, endpoint: 'chat.completions', keep: false, call: callOf(), sink: collect() };
      await assert.rejects(async () => await executeChat(job), {
        code: 'invalid_request_error',
        status: 400,
        message: 'The vendor of this model, mute, does not offer chat completions.',
      });
      await vendor.close();
    });
  });

  const thought = { type: 'thinking', thinking: 'Hm.', signature: 'sig' };
  const expected = [
    { type: 'text', text: 'First. ', citations: [] },
    { type: 'thinking', thinking: 'Hm.', signature: 'sig' },
    { type: 'text', text: 'Then.', citations: [] },
  ];
  const anthropic = new VendorBench((baseUrl) =>
    createAnthropic({ name: 'anthropic', baseUrl, apiKey: 'sk-ant-test' }),
  );
  const bedrock = new VendorBench((baseUrl) =>
    createBedrock({ name: 'bedrock', baseUrl, apiKey: 'AKIA0123456789:secret' }),
  );

  it('a held message of Claude keeps the order of its texts and thoughts', async () => {
    const usage = { input_tokens: 1, output_tokens: 2 };
    const content = [{ type: 'text', text: 'First. ' }, thought, { type: 'text', text: 'Then.' }];
    anthropic.server.answer((response) =>
      sendJson(response, 200, JSON.stringify({ type: 'message', content, stop_reason: 'end_turn', usage })),
    );
    const converse = [
      { text: 'First. ' },
      { reasoningContent: { reasoningText: { text: 'Hm.', signature: 'sig' } } },
      { text: 'Then.' },
    ];
    const output = { message: { role: 'assistant', content: converse } };
    bedrock.server.answer((response) => sendJson(response, 200, JSON.stringify({ output, stopReason: 'end_turn' })));
    for (const { vendor } of [anthropic, bedrock]) {
      const { body } = await vendor.chat(callOf({ stream: false, model: 'anthropic.claude-opus-4-8' }), collect());
      const message = held(messages.view, { seq: 1, type: 'end', text: body });
      assert.deepEqual(message.content, expected);
      assert.equal(JSON.parse(body).choices[0].message.content, 'First. Then.');
    }
  });
});
