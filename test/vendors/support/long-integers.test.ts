import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { parseChat } from '../../../api/endpoints/chat/parse-chat.ts';
import { messages } from '../../../api/endpoints/messages/messages.ts';
import { parseMessages } from '../../../api/endpoints/messages/parse-messages.ts';
import { parseResponse } from '../../../api/endpoints/responses/parse-response.ts';
import { parseSocketMessage } from '../../../api/endpoints/responses/socket/parse-socket-message.ts';
import { textOf } from '../../../api/pipeline/request-text.ts';
import { parseExact, stringifyExact } from '../../../shared/capabilities/exact-json.ts';
import { ownItemId, type ResponseJob } from '../../../shared/capabilities/response.ts';
import { toChatRequest } from '../../../workers/execute/response-as-chat.ts';
import { createAnthropic } from '../../../workers/vendors/anthropic/anthropic.ts';
import { createBedrock } from '../../../workers/vendors/bedrock/bedrock.ts';
import { createGemini } from '../../../workers/vendors/gemini/gemini.ts';
import { composeResponseRequest } from '../../../workers/vendors/openai/response-request.ts';
import type { Offering } from '../../../workers/vendors/vendor.ts';
import { throughLog } from '../../support/through-log.ts';
import { callOf, collect, sendJson, sendStream } from '../contracts/fixture-vendor.ts';
import { VendorBench } from '../contracts/vendor-bench.ts';

/** An id of 64 bits, and others of all kinds of numbers: as JavaScript writes them, where it has them. */
const input = '{"id":9007199254740993,"ids":[-9223372036854775808,1e21,0.1,12],"text":"9007199254740993 \\" \\\\"}';

const call = { id: 'c1', type: 'function', function: { name: 'f', arguments: input } };
const asked = [
  { role: 'user', content: 'Go.' },
  { role: 'assistant', content: null, tool_calls: [call] },
  { role: 'tool', tool_call_id: 'c1', content: 'done' },
];
const tools = [{ type: 'function', function: { name: 'f' } }];
/** The bounds of integers of 64 bits, as generators of schemas write them. */
const schema = '{"type":"integer","minimum":-9223372036854775808,"maximum":9223372036854775807}';

/** A vendor, its model, and an answer with one call. */
interface Wire {
  readonly create: (baseUrl: string) => Offering<'chat'>;
  readonly model: string;
  readonly answer: string;
}

const apiKey = 'a-key-of-some-length-0123456789';
const converse = `{"output":{"message":{"role":"assistant","content":[{"toolUse":{"toolUseId":"c1","name":"f","input":${input}}}]}},"stopReason":"tool_use"}`;
const generated = `{"candidates":[{"content":{"role":"model","parts":[{"functionCall":{"id":"c1","name":"f","args":${input}}}]},"finishReason":"STOP","index":0}]}`;
const wires: Record<string, Wire> = {
  Anthropic: {
    create: (baseUrl) => createAnthropic({ name: 'anthropic', baseUrl, apiKey }),
    model: 'claude-opus-5-5',
    answer: `{"type":"message","content":[{"type":"tool_use","id":"c1","name":"f","input":${input}}],"stop_reason":"tool_use"}`,
  },
  Bedrock: {
    create: (baseUrl) => createBedrock({ name: 'bedrock', baseUrl, apiKey }),
    model: 'us.anthropic.claude-opus-4-6-v1',
    answer: converse,
  },
  Gemini: {
    create: (baseUrl) => createGemini({ name: 'gemini', baseUrl, apiKey }),
    model: 'gemini-2.5-flash',
    answer: generated,
  },
};

for (const [name, { create, model, answer }] of Object.entries(wires)) {
  describe(`integers beyond 2^53 in tool arguments with ${name}`, () => {
    const bench = new VendorBench(create);

    const argumentsIn = (choices: string): unknown => {
      const [{ message, delta }] = (JSON.parse(choices) as { choices: [Record<string, typeof said>] }).choices;
      const said = (message ?? delta) as { tool_calls: [{ function: { arguments: string } }] };
      return said.tool_calls[0].function.arguments;
    };

    it(`${name} gets the arguments of earlier calls with all their digits`, async () => {
      bench.server.answer((response) => sendJson(response, 200, answer));
      for (const more of [{ tools }, {}]) {
        const request = JSON.stringify({ messages: asked, ...more });
        await bench.vendor.chat(callOf({ model, stream: false, request }), collect());
        const sent = bench.posts.at(-1)?.body.replaceAll('\\"', '"') ?? '';
        assert.match(sent, /"id":9007199254740993,"ids":\[-9223372036854775808,1e\+?21,0\.1,12\]/);
      }
    });

    it(`${name} gets the schemas of tools and of the answer with all their digits`, async () => {
      bench.server.answer((response) => sendJson(response, 200, answer));
      const format = `{"type":"json_schema","json_schema":{"name":"a","schema":${schema}}}`;
      const fields = `"tools":[{"type":"function","function":{"name":"f","parameters":${schema}}}],"response_format":${format}`;
      const request = `{"messages":[{"role":"user","content":"Go."}],${fields}}`;
      await bench.vendor.chat(callOf({ model, stream: false, request }), collect());
      // Claude gets what its schemas cannot say in their descriptions.
      const sent = bench.posts.at(-1)?.body.replaceAll(/\\+"/g, '"') ?? '';
      assert.equal(sent.split('"minimum":-9223372036854775808,"maximum":9223372036854775807').length, 3, sent);
    });

    it(`${name} answers with arguments that have all their digits`, async () => {
      bench.server.answer((response) => sendJson(response, 200, answer));
      const held = await bench.vendor.chat(callOf({ model, stream: false }), collect());
      assert.equal(argumentsIn(held.body), input.replace('1e21', '1e+21'));
      const sink = collect();
      await bench.vendor.chat(callOf({ model }), sink);
      assert.equal(argumentsIn(sink.frames[0]?.text ?? ''), input.replace('1e21', '1e+21'));
    });
  });
}

describe('integers beyond 2^53 in streams and messages', () => {
  const gemini = new VendorBench((wires.Gemini as Wire).create);

  it("a call in Gemini's stream keeps its digits", async () => {
    gemini.server.answer((response) => sendStream(response, [`data: ${generated}\r\n\r\n`]));
    const sink = collect();
    await gemini.vendor.chat(callOf({ model: 'gemini-2.5-flash' }), sink);
    assert.ok(sink.frames[0]?.text.includes('\\"id\\":9007199254740993'));
  });

  it('a message keeps the digits of earlier calls, of schemas and of the answer', async () => {
    const own = '{"type":"object","properties":{"id":{"type":"integer","maximum":9223372036854775807}}}';
    const body = `{"model":"m","max_tokens":9,"seed":9007199254740993,"tools":[{"name":"f","input_schema":${own}}],"messages":[{"role":"user","content":"Go."},{"role":"assistant","content":[{"type":"tool_use","id":"c1","name":"f","input":${input}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1"}]}]}`;
    const request = textOf((await parseMessages(Buffer.from(body))).request);
    assert.ok(request.includes('"seed":9007199254740993'));
    assert.ok(request.includes(`"parameters":${own}`));
    const chat = JSON.parse(request) as { messages: [unknown, { tool_calls: [typeof call] }] };
    assert.equal(chat.messages[1].tool_calls[0].function.arguments, input.replace('1e21', '1e+21'));
    const frame = { choices: [{ index: 0, message: { tool_calls: [call] }, finish_reason: 'tool_calls' }] };
    const job = { id: 'j', model: 'm', createdAt: 0, viewOptions: { hidesThinking: false, stopSequences: [] } };
    const held = messages.view.held(
      { ...job, link: (file) => file },
      throughLog([{ type: 'end', text: JSON.stringify(frame) }], [1]),
    );
    assert.ok(held.includes(`"input":${input.replace('1e21', '1e+21')}`));
  });

  it('a chat keeps the digits of its schemas, and is otherwise as its schema reads it', async () => {
    const parameters = `{"type":"object","properties":{"id":${schema}}}`;
    const tool = `{"type":"function","function":{"name":"f","description":null,"parameters":${parameters}}}`;
    const format = `{"type":"json_schema","json_schema":{"name":"a","schema":${schema}}}`;
    const body = `{"model":"m","user":null,"temperature":0.5,"messages":[{"role":"user","content":"Go."}],"tools":[${tool}],"response_format":${format}}`;
    const request = textOf((await parseChat(Buffer.from(body))).request);
    assert.equal(
      request,
      `{"temperature":0.5,"messages":[{"role":"user","content":"Go."}],"tools":[${tool.replace('"description":null,', '')}],"response_format":${format}}`,
    );
  });

  it('a chat over 64 KiB keeps the digits of its schemas, whichever of its fields is long', async () => {
    const tool = `{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{"id":${schema}}}}}`;
    const text = 'Go. '.repeat(20_000);
    for (const space of ['', ' ']) {
      const body = `{"model":"m","messages":[{"role":"user","content":"${text}"}],"tools":[${space}${tool}]}`;
      const request = textOf((await parseChat(Buffer.from(body))).request);
      assert.ok(request.includes(`"tools":[${tool}]`), request.slice(-300));
    }
  });

  it('a response keeps the digits of its schemas on its way to a chat and to a vendor with the Responses API', async () => {
    const tool = `{"type":"function","name":"f","description":null,"parameters":${schema}}`;
    const fields = `"tools":[${tool}],"text":{"format":{"type":"json_schema","name":"a","schema":${schema}}}`;
    const id = ownItemId('msg_67c9', '0'.repeat(32));
    const body = `{"model":"m","user":null,"input":[{"type":"message","role":"assistant","id":"${id}","content":"Hm."}],${fields}}`;
    const { request, viewOptions } = await parseResponse(Buffer.from(body));
    const text = textOf(request);
    assert.ok(text.endsWith(`,${fields}}`), text);
    assert.equal(viewOptions.afterInput, `,${fields}}`.length);
    const native = composeResponseRequest(callOf({ request: text }));
    assert.ok(native.includes(fields) && native.includes('"id":"msg_67c9"'), native);
    const chat = toChatRequest(parseExact(text) as ResponseJob);
    assert.equal(chat.split(schema).length, 3, chat);
    const socket = await parseSocketMessage(Buffer.from(`{"type":"response.create",${body.slice(1)}`));
    assert.equal(textOf(socket.request), text);
  });

  it('parseExact reads what JSON.parse reads, and stringifyExact writes it again', () => {
    for (const text of ['9007199254740993', '[-12345678901234567890]', '{"1234567890123456":"1234567890123456789"}']) {
      assert.equal(stringifyExact(parseExact(text)), text);
    }
    for (const text of [
      '1234567890123456',
      '0.1234567890123456789',
      '1234567890123456e3',
      '"\\\\\\"1234567890123456"',
    ]) {
      assert.deepEqual(parseExact(text), JSON.parse(text));
    }
    for (const text of ['9007199254740993x', '{"a:9007199254740993', '-', '']) {
      assert.throws(() => parseExact(text), SyntaxError);
    }
  });
});
