import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { executeChat } from '../../../workers/execute/execute.ts';
import { createVendor } from '../../../workers/vendors/registry.ts';
import { madeUpModel } from '../../support/routed-model.ts';
import { vendorSettings } from '../../support/vendor-settings.ts';
import { callOf, collect, sendJson, sendStream, startFixtureVendor } from '../contracts/fixture-vendor.ts';
import { completion, events, streams, usage, usageChunk } from '../recorded/recorded-openai.ts';

type Fields = Record<string, unknown>;

const apiKey = 'a-key-of-some-length-0123456789';
const message =
  "Function tools with reasoning_effort are not supported for gpt-5.6-terra in /v1/chat/completions. To use function tools, use /v1/responses or set reasoning_effort to 'none'.";
const refusal = { message, type: 'invalid_request_error', param: 'reasoning_effort', code: null };
const chat = {
  messages: [{ role: 'user', content: 'Go.' }],
  tools: [
    {
      type: 'function',
      function: { name: 'f', parameters: { type: 'object', properties: { n: { const: 'exact' } } } },
    },
  ],
};
// Its constant is above the integers that JavaScript has.
const text = (fields: object): string => JSON.stringify({ ...chat, ...fields }).replace('"exact"', '9007199254740993');

/** Asks a vendor that takes tools only without reasoning; what it is sent, and the answer or the error. */
async function ask(
  { name = 'openai', endpoint = 'chat', stream = false, error = refusal, without }: Fields,
  fields: object,
): Promise<{ sent: string[]; efforts: unknown[]; outcome: Fields; frames: number }> {
  const server = await startFixtureVendor();
  const vendor = createVendor(String(name), vendorSettings(String(name), server.baseUrl, apiKey), apiKey);
  server.answer((response, { body }) => {
    const { tools, reasoning_effort: effort } = JSON.parse(body);
    if (tools !== undefined && (effort !== 'none' || error !== refusal)) {
      // What asks without end ends with another error.
      sendJson(response, server.requests.length > 5 ? 500 : 400, JSON.stringify({ error }));
    } else if (without !== undefined) sendJson(response, 400, JSON.stringify({ error: without }));
    else if (stream) sendStream(response, [events([...(streams['plain text'] ?? []), usageChunk])]);
    else sendJson(response, 200, JSON.stringify(completion));
  });
  const row = madeUpModel(
    { id: 'gpt-5.6-terra', capability: 'chat', chat: { hints: false, effort: true } },
    String(name),
  );
  const call = callOf({ model: 'gpt-5.6-terra', stream: stream === true, request: text(fields) });
  const sink = collect();
  const execution = { vendor, row, endpoint: String(endpoint), keep: false, call, sink };
  const outcome = await executeChat(execution).catch((thrown: unknown) => thrown);
  await vendor.close();
  await server.close();
  const sent = server.requests.map(({ body }) => body);
  const efforts = sent.map((body) => JSON.parse(body).reasoning_effort);
  return { sent, efforts, outcome: outcome as Fields, frames: sink.frames.length };
}

describe('tools with models that take them only without reasoning', () => {
  it('a message with tools is repeated once without reasoning, at OpenAI and Azure, streamed and not', async () => {
    for (const name of ['openai', 'azure']) {
      for (const stream of [true, false]) {
        for (const effort of [undefined, 'high']) {
          const asked = { name, endpoint: 'messages', stream };
          const { sent, efforts, outcome, frames } = await ask(asked, { reasoning_effort: effort });
          assert.deepEqual(efforts, [effort, 'none'], name);
          // The usage is that of the call that was answered.
          assert.deepEqual(outcome.usage, usage);
          assert.equal(frames > 0, stream);
          assert.match(sent[1] ?? '', /"const":9007199254740993\b/);
          const { reasoning_effort: _, ...repeated } = JSON.parse(sent[1] ?? '') as Fields;
          const { reasoning_effort: __, ...first } = JSON.parse(sent[0] ?? '') as Fields;
          assert.deepEqual(repeated, first);
        }
      }
    }
  });

  it('a chat with tools is repeated without reasoning if it has no effort, and refused if it has one of its own', async () => {
    for (const name of ['openai', 'azure']) {
      for (const effort of [undefined, null]) {
        const { efforts, outcome } = await ask({ name }, { reasoning_effort: effort });
        assert.deepEqual(efforts, [effort, 'none']);
        assert.deepEqual(outcome.usage, usage);
      }
      const { efforts, outcome } = await ask({ name }, { reasoning_effort: 'low' });
      assert.deepEqual(efforts, ['low']);
      assert.deepEqual([outcome.status, outcome.param, outcome.message], [400, 'reasoning_effort', message]);
    }
  });

  it('a model that refuses tools without reasoning, too, is not asked a third time', async () => {
    for (const endpoint of ['messages', 'chat']) {
      const { efforts, outcome } = await ask({ endpoint, error: { ...refusal } }, {});
      assert.deepEqual(efforts, [undefined, 'none']);
      assert.equal(outcome.status, 400);
    }
  });

  it('a model that takes tools neither with reasoning nor without is told of in the words for what its caller has sent', async () => {
    // GPT-6 Astra, which takes them in responses alone.
    const none = "Unsupported value: 'reasoning_effort' does not support 'none' with this model.";
    for (const endpoint of ['messages', 'chat']) {
      const { efforts, outcome } = await ask({ endpoint, without: { ...refusal, message: none } }, {});
      assert.deepEqual(efforts, [undefined, 'none']);
      assert.deepEqual([outcome.status, outcome.message], [400, message]);
    }
  });

  it('another refusal of an effort, or of another field in these words, is not answered by another call', async () => {
    const other = "Unsupported value: 'reasoning_effort' does not support 'low' with this model.";
    for (const error of [
      { ...refusal, message: other },
      { ...refusal, param: 'tools' },
    ]) {
      const { sent, outcome } = await ask({ endpoint: 'messages', error }, { reasoning_effort: 'low' });
      assert.equal(sent.length, 1);
      assert.equal(outcome.status, 400);
    }
  });
});
