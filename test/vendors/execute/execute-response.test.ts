import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { startSandbox } from '../../../sandbox/server.ts';
import { ownItemId, type ResponseItem } from '../../../shared/capabilities/response.ts';
import { executeChat } from '../../../workers/execute/execute.ts';
import { createOpenAiDialect } from '../../../workers/vendors/openai/dialect.ts';
import type { Vendor } from '../../../workers/vendors/vendor.ts';
import { routedModel } from '../../support/routed-model.ts';
import { callOf, collect } from '../contracts/fixture-vendor.ts';

type Fields = Record<string, unknown>;
const jobId = '0199a1b2c3d4e5f60718293a4b5c6d7e';
const user = (content: string) => ({ role: 'user', content });
const weather = {
  type: 'function',
  name: 'get_weather',
  parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
};

describe('response jobs at the sandbox', () => {
  let sandbox: Awaited<ReturnType<typeof startSandbox>>;
  let vendor: Vendor;
  before(async () => {
    sandbox = await startSandbox();
    vendor = createOpenAiDialect({ name: 'sandbox', baseUrl: `${sandbox.url}/v1`, apiKey: 'sandbox' });
  });
  after(async () => {
    await vendor.close();
    await sandbox.close();
  });

  /** Runs a job as a worker does; natively where the model has it. */
  async function respond(model: string, fields: Fields, stream = true) {
    const sink = collect();
    const call = callOf({ model, stream, request: JSON.stringify(fields), silenceMs: 2000 });
    const begunAt = Math.floor(Date.now() / 1000);
    const answer = await executeChat({
      vendor,
      row: routedModel(model),
      endpoint: 'responses',
      keep: false,
      call,
      sink,
    });
    const { completed_at: completedAt, ...end } = JSON.parse(answer.body);
    assert.ok(completedAt >= begunAt && completedAt <= Date.now() / 1000);
    return { frames: sink.data() as Fields[], end, usage: answer.usage };
  }

  /** The items of a native response, as callers know them. */
  function ownItems(items: readonly ResponseItem[]): ResponseItem[] {
    return items.map((item) => ({ ...item, id: ownItemId(String(item.id), jobId) }));
  }
  const itemsOf = (frames: readonly Fields[]) =>
    frames.filter(({ type }) => type === 'response.output_item.done').map(({ item }) => item as ResponseItem);

  it("a response job runs natively over messages that send earlier items back under the gateway's ids", async () => {
    const reasoning = { effort: 'high', summary: 'auto' };
    const asked = { input: [user('Weather?')], reasoning, tools: [weather], tool_choice: 'required' };
    const first = await respond('sandbox-responses', asked);
    const items = itemsOf(first.frames);
    assert.ok(items.some(({ type, encrypted_content: sealed }) => type === 'reasoning' && typeof sealed === 'string'));
    const call = items.find(({ type }) => type === 'function_call');
    assert.ok(call);
    const output = { type: 'function_call_output', call_id: call.call_id, output: 'Sunny' };
    const input = [user('Weather?'), ...ownItems(items), output];
    for (const stream of [true, false]) {
      const second = await respond('sandbox-responses', { input, reasoning }, stream);
      const last = stream ? itemsOf(second.frames) : second.end.response.output;
      assert.match(JSON.stringify(last), /Sunny/);
      assert.equal(second.end.response.status, 'completed');
      assert.ok(Number(second.usage?.input_tokens) > 0);
    }
  });

  it('a response job runs as a chat when the model has no responses, with the frames of the chat', async () => {
    const tools = { tools: [weather, { type: 'web_search' }], tool_choice: { type: 'function', name: 'get_weather' } };
    const first = await respond('sandbox-chat', { input: [user('Weather?')], ...tools });
    const deltas = first.frames.map(({ choices }) => (choices as { delta: Fields }[])[0]?.delta);
    assert.ok(deltas.some((delta) => Array.isArray(delta?.tool_calls)));
    assert.ok(Number(first.end.usage.prompt_tokens) > 0);
    const input = [
      user('Weather?'),
      { type: 'function_call', id: ownItemId('fc_0', jobId), call_id: 'call_1', name: 'get_weather', arguments: '{}' },
      { type: 'function_call_output', call_id: 'call_1', output: 'Sunny' },
    ];
    const second = await respond('sandbox-chat', { input, instructions: 'Be brief.' }, false);
    assert.match(second.end.choices[0].message.content, /Sunny/);
    assert.deepEqual(second.frames, []);
  });

  it("a native response job ends with the code of the vendor's fault", async () => {
    const fail = (fault: Fields, stream = true) =>
      respond('sandbox-responses', { input: [user('Hello there')], sandbox: { fault } }, stream);
    const cases: [fault: Fields, code: string][] = [
      [{ kind: 'eof', after_tokens: 2 }, 'stream_interrupted'],
      [{ kind: 'malformed', after_tokens: 2 }, 'stream_interrupted'],
      [{ kind: 'reset', after_tokens: 2 }, 'stream_interrupted'],
      [{ kind: 'reset' }, 'server_error'],
      [{ kind: 'silence', after_tokens: 2 }, 'timeout'],
      [{ kind: 'error', status: 500 }, 'server_error'],
      [{ kind: 'rate_limit', retry_after: 3 }, 'rate_limit_exceeded'],
      [{ kind: 'failed_event', after_tokens: 2 }, 'server_error'],
    ];
    for (const [fault, code] of cases) await assert.rejects(fail(fault), { code }, JSON.stringify(fault));
    await assert.rejects(fail({ kind: 'failed_event' }, false), { code: 'server_error' });
    const whole = await respond('sandbox-responses', { input: [user('Hello there')] });
    const texts = ({ frames }: { frames: Fields[] }) => frames.map(({ delta }) => delta);
    assert.deepEqual(texts(await fail({ kind: 'slow_bytes' })), texts(whole));
  });
});
