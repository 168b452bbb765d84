import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { parseResponse, type ResponseViewOptions } from '../../../api/endpoints/responses/parse-response.ts';
import { forNextTurn, responseView } from '../../../api/endpoints/responses/response-view.ts';
import type { ParsedRequest } from '../../../api/pipeline/parsed-request.ts';
import type { ViewedJob } from '../../../api/replies/view.ts';
import type { ResponseItem } from '../../../shared/capabilities/response.ts';
import { writeUnsignedThought } from '../../../shared/capabilities/signed-thought.ts';
import type { Frame } from '../../../shared/jobs/append.ts';
import { executeChat } from '../../../workers/execute/execute.ts';
import { composeResponseRequest } from '../../../workers/vendors/openai/response-request.ts';
import { createVendor } from '../../../workers/vendors/registry.ts';
import { madeUpModel } from '../../support/routed-model.ts';
import { parseResponseEvents, saidInResponse } from '../../support/said-in-response.ts';
import { shownInEachForm } from '../../support/shown-in-each-form.ts';
import { throughLog } from '../../support/through-log.ts';
import { vendorSettings } from '../../support/vendor-settings.ts';
import { callOf, collect, type FixtureVendor, sendJson, startFixtureVendor } from '../contracts/fixture-vendor.ts';

const model = 'deepseek-chat';
const row = madeUpModel({ id: model, capability: 'chat', chat: { hints: true, effort: true } }, 'deepseek');
const thought = 'First the "weather".\n🦥';
const call = { id: 'call_1', type: 'function', function: { name: 'get_weather', arguments: '{"city":"Łódź"}' } };
const message = { role: 'assistant', content: null, reasoning_content: thought, tool_calls: [call] };
const completion = { id: 'x', created: 1, model, choices: [{ index: 0, message, finish_reason: 'tool_calls' }] };
const include = ['reasoning.encrypted_content'];

describe('reasoning of a chat whose vendor signs nothing, through responses', () => {
  let server: FixtureVendor;
  let vendor: ReturnType<typeof createVendor>;
  before(async () => {
    server = await startFixtureVendor();
    const apiKey = 'sk-test-0123456789abcdef';
    vendor = createVendor('deepseek', vendorSettings('deepseek', server.baseUrl, apiKey), apiKey);
    server.answer((response) => sendJson(response, 200, JSON.stringify(completion)));
  });
  after(async () => {
    await vendor.close();
    await server.close();
  });

  const request = (more: object): ParsedRequest => {
    const tools = [{ type: 'function', name: 'get_weather', parameters: {} }];
    return parseResponse(Buffer.from(JSON.stringify({ model, store: false, input: 'Weather?', tools, ...more })));
  };
  const execute = async ({ request: asked }: ParsedRequest): Promise<Frame[]> => {
    const sink = collect();
    const sent = callOf({ model, request: String(asked), stream: false });
    const end = await executeChat({ vendor, row, endpoint: 'responses', keep: false, call: sent, sink });
    return throughLog([...sink.frames, { type: 'end', text: end.body }], [1]);
  };
  type Viewed = ViewedJob<ResponseViewOptions>;
  const ask = async (more: object, readAs = (viewed: Viewed): Viewed => viewed): Promise<ResponseItem[]> => {
    const parsed = request(more) as ParsedRequest<unknown, ResponseViewOptions>;
    const { viewOptions } = parsed;
    const job = { id: '0197a3b0c4d57e8f9a0b1c2d3e4f5a6b', model, createdAt: 1, viewOptions };
    const fold = async (texts: readonly string[]) => saidInResponse(parseResponseEvents(texts).slice(0, -1)).response;
    const frames = await execute(parsed);
    return (await shownInEachForm(responseView, readAs({ ...job, link: (file) => file }), frames, fold)).output;
  };
  /** The next turn of a client that keeps of reasoning only what is encrypted, as the AI SDK does without storage. */
  const next = (output: readonly ResponseItem[]): ParsedRequest =>
    request({
      input: [
        { role: 'user', content: 'Weather?' },
        ...output.flatMap(({ type, encrypted_content: encrypted, id: _, status: __, ...item }) => {
          if (type !== 'reasoning') return [{ type, ...item }];
          return encrypted === undefined ? [] : [{ type, summary: [], encrypted_content: encrypted }];
        }),
        { type: 'function_call_output', call_id: 'call_1', output: 'Rain.' },
      ],
    });
  const returned = (): unknown =>
    JSON.parse(server.requests.at(-1)?.body ?? assert.fail()).messages.find(
      ({ role }: { role: string }) => role === 'assistant',
    ).reasoning_content;

  it('it returns to the vendor from a client that keeps only what is encrypted, as text or as a summary', async () => {
    for (const more of [{ include }, { include, reasoning: { effort: 'low', summary: 'auto' } }]) {
      await execute(next(await ask(more)));
      assert.equal(returned(), thought);
    }
  });

  it('a client that asked for it is not told that this was ignored, and one that did not has no second copy', async () => {
    const { requirements } = request({ include }) as unknown as { requirements: { chatIgnored: readonly string[] } };
    assert.deepEqual(requirements.chatIgnored, []);
    const [plain] = await ask({});
    assert.equal(plain?.encrypted_content, undefined);
  });

  it("the gateway's own reading for the next turn has its text once", async () => {
    const [item] = await ask({}, forNextTurn);
    assert.deepEqual(item?.content, [{ type: 'reasoning_text', text: thought }]);
    assert.equal(item?.encrypted_content, undefined);
  });

  it("the gateway's own reading has its text once also of a stream that is kept for a caller that asked for the copy", () => {
    const chunks = [{ reasoning_content: 'First ' }, { reasoning_content: thought }, { content: 'Rain.' }].map(
      (delta) => ({
        type: 'delta' as const,
        text: JSON.stringify({ choices: [{ index: 0, delta }] }),
      }),
    );
    const frames = throughLog(
      [...chunks, { type: 'end', text: JSON.stringify({ completed_at: 1, usage: null }) }],
      [2],
    );
    const { viewOptions } = parseResponse(Buffer.from(JSON.stringify({ model, input: 'Weather?', include })));
    assert.ok(viewOptions);
    const job = { id: '0197a3b0c4d57e8f9a0b1c2d3e4f5a6b', model, createdAt: 1, link: (file: string) => file };
    const kept = responseView.final?.(frames, { ...job, viewOptions }) ?? assert.fail();
    assert.equal(kept.length, 2);
    const read = (viewed: Viewed): ResponseItem | undefined => JSON.parse(responseView.held(viewed, kept)).output[0];
    const viewed = { ...job, viewOptions };
    assert.equal(read(viewed)?.encrypted_content, writeUnsignedThought(`First ${thought}`));
    assert.deepEqual(read(forNextTurn(viewed))?.content, [{ type: 'reasoning_text', text: `First ${thought}` }]);
    assert.equal(read(forNextTurn(viewed))?.encrypted_content, undefined);
  });

  it('it is not sent to OpenAI, which reads only its own reasoning', async () => {
    const sent = composeResponseRequest(
      callOf({ model: 'gpt-5', request: String(next(await ask({ include })).request) }),
    );
    assert.deepEqual(
      JSON.parse(sent).input.map(({ type }: ResponseItem) => type ?? 'message'),
      ['message', 'function_call', 'function_call_output'],
    );
  });
});
