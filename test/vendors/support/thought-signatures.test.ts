import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type Anthropic from '@anthropic-ai/sdk';
import { MessageStream } from '@anthropic-ai/sdk/lib/MessageStream';
import fc from 'fast-check';
import { messages } from '../../../api/endpoints/messages/messages.ts';
import { parseMessages } from '../../../api/endpoints/messages/parse-messages.ts';
import { parseResponse } from '../../../api/endpoints/responses/parse-response.ts';
import { responseView } from '../../../api/endpoints/responses/response-view.ts';
import type { ParsedRequest } from '../../../api/pipeline/parsed-request.ts';
import type { ResponseItem } from '../../../shared/capabilities/response.ts';
import { readThoughtSignature, writeThoughtSignature } from '../../../shared/capabilities/thought-signature.ts';
import type { Frame } from '../../../shared/jobs/append.ts';
import { executeChat } from '../../../workers/execute/execute.ts';
import { withoutHints } from '../../../workers/execute/without-hints.ts';
import { toMessageRequest } from '../../../workers/vendors/anthropic/request.ts';
import { createGemini } from '../../../workers/vendors/gemini/gemini.ts';
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
import { event, events, lastEvent } from '../recorded/recorded-gemini.ts';

type Part = Record<string, unknown>;

/** One to whose calls the adapter adds no signature of its own where they have none. */
const row = madeUpModel({ id: 'gemini-2.5-flash', capability: 'chat', chat: { hints: true, effort: true } }, 'gemini');
const jobId = '0197a3b0c4d57e8f9a0b1c2d3e4f5a6b';

const thought = { text: 'I need the weather.', thought: true };
const called = (id: string, name: string, thoughtSignature?: string): Part => ({
  functionCall: { id, name, args: { city: 'Łódź' } },
  ...(thoughtSignature !== undefined && { thoughtSignature }),
});

/**
 * Turns that end with calls, and what of them Gemini is to get back: all but the summaries of thoughts
 * (https://ai.google.dev/gemini-api/docs/thought-signatures).
 */
const turns: Record<string, readonly Part[]> = {
  'a thought, a text and a signed call': [
    thought,
    { text: 'Let me look.' },
    called('fc_1', 'get_weather', 'CsUBAdHtim9x'),
  ],
  'a thought and a signed call': [thought, called('fc_1', 'get_weather', 'Cs+UB/AdHtim9x==')],
  'a signed call alone': [called('fc_1', 'get_weather', 'CsUBAdHtim9x')],
  'parallel calls, of which the first is signed': [
    thought,
    called('fc_1', 'get_weather', 'CsUBAdHtim9x'),
    called('fc_2', 'get_time'),
    called('fc_3', 'get_date'),
  ],
  'parallel calls, each signed': [called('fc_1', 'get_weather', 'One'), called('fc_2', 'get_time', 'Two')],
  'a signed text and a signed call': [
    { text: 'Let me look.', thoughtSignature: 'EhQKEgFyz' },
    called('fc_1', 'get_weather', 'CsUBAdHtim9x'),
  ],
  'a signed text before an unsigned call': [
    { text: 'Let me look.', thoughtSignature: 'EhQKEgFyz' },
    called('fc_1', 'get_weather'),
  ],
};

const tools = ['get_weather', 'get_time', 'get_date'];
const callIds = (parts: readonly Part[]): string[] =>
  parts.flatMap(({ functionCall }) => (functionCall === undefined ? [] : String((functionCall as Part).id)));

describe("Google's thought signatures", () => {
  let server: FixtureVendor;
  let vendor: Offering<'chat'>;
  before(async () => {
    server = await startFixtureVendor();
    vendor = createGemini({ name: 'gemini', baseUrl: server.baseUrl, apiKey: 'AIzaSyTest0123456789abcdefghijklm' });
  });
  after(async () => {
    await vendor.close();
    await server.close();
  });

  /** Streamed as Gemini streams it, a part an event; held as one answer. */
  const answerWith = (parts: readonly Part[]): void => {
    const all = [...parts.map((part) => event([part])), lastEvent([{ text: '' }])];
    server.answer((response, { url }) => {
      if (url?.includes(':streamGenerateContent')) sendStream(response, [events(all)]);
      else sendJson(response, 200, JSON.stringify(lastEvent([...parts])));
    });
  };
  const execute = async (endpoint: string, { request, stream }: ParsedRequest): Promise<Frame[]> => {
    const sink = collect();
    const call = callOf({ model: 'gemini-2.5-flash', request: String(request), stream });
    const end = await executeChat({ vendor, row, endpoint, keep: false, call, sink });
    return throughLog([...sink.frames, { type: 'end', text: end.body }], [1]);
  };
  const sentParts = (): Part[] => {
    const { contents } = JSON.parse(server.requests.at(-1)?.body ?? assert.fail());
    return contents.find(({ role }: Part) => role === 'model').parts;
  };
  const jobOf = ({ viewOptions }: ParsedRequest) => {
    return {
      id: jobId,
      model: 'gemini-2.5-flash',
      createdAt: 1_700_000_000_123,
      viewOptions,
      link: (file: string) => file,
    };
  };

  describe("Google's thought signatures through messages", () => {
    const request = (more: object): ParsedRequest => {
      const asked = { model: 'gemini-2.5-flash', max_tokens: 100, messages: [{ role: 'user', content: 'Weather?' }] };
      const offered = tools.map((name) => ({ name, input_schema: { type: 'object' } }));
      return parseMessages(Buffer.from(JSON.stringify({ ...asked, tools: offered, ...more })));
    };
    /** By Anthropic's own client. */
    const fold = async (texts: readonly string[]): Promise<Anthropic.Message> => {
      const lines = texts.map((text) => `${/^data: (.*)$/m.exec(text)?.[1]}\n`);
      const { parsed_output: _, ...message } = await MessageStream.fromReadableStream(
        new Blob(lines).stream(),
      ).finalMessage();
      // Its blocks of text have a field of the client's, too.
      return JSON.parse(JSON.stringify(message, (name, value) => (name === 'parsed' ? undefined : value)));
    };
    const ask = async (parts: readonly Part[], stream: boolean, more: object = {}): Promise<Anthropic.Message> => {
      answerWith(parts);
      const parsed = request({ stream, ...more });
      return await shownInEachForm(messages.view, jobOf(parsed), await execute('messages', parsed), fold);
    };
    /** The next turn, as Claude Code makes it. */
    const next = ({ content }: Pick<Anthropic.Message, 'content'>, ids: readonly string[], more: object = {}) =>
      request({
        messages: [
          { role: 'user', content: 'Weather?' },
          { role: 'assistant', content },
          { role: 'user', content: ids.map((id) => ({ type: 'tool_result', tool_use_id: id, content: 'Rain.' })) },
        ],
        ...more,
      });

    for (const [name, parts] of Object.entries(turns)) {
      for (const stream of [true, false]) {
        it(`a thought signature returns to Gemini through /v1/messages after ${name}, ${stream ? 'streamed' : 'held'}`, async () => {
          const ids = callIds(parts);
          const answer = await ask(parts, stream);
          assert.equal(answer.content.at(-1)?.type, 'tool_use');
          await execute('messages', next(answer, ids));
          assert.deepEqual(
            sentParts(),
            parts.filter((part) => part.thought !== true),
          );
        });
      }
    }

    it('a thought signature returns through /v1/messages when the caller wants no thinking, or none of its text', async () => {
      const parts = turns['a thought, a text and a signed call'] ?? assert.fail();
      for (const thinking of [{ type: 'disabled' }, { type: 'adaptive', display: 'omitted' }]) {
        const answer = await ask(parts, true, { thinking });
        const thoughts = answer.content.filter((block) => block.type === 'thinking');
        assert.deepEqual(
          thoughts.map((block) => block.thinking),
          [''],
        );
        await execute('messages', next(answer, ['fc_1'], { thinking }));
        assert.deepEqual(sentParts(), parts.slice(1));
      }
    });

    it('a thought signature makes no block after the last text of /v1/messages', async () => {
      const parts = [thought, { text: 'Rain.' }, { text: '', thoughtSignature: 'EhQKEgFyz' }];
      const answer = await ask(parts, true, { thinking: { type: 'adaptive' } });
      assert.deepEqual(
        answer.content.map(({ type }) => type),
        ['thinking', 'text'],
      );
    });

    it('a thought signature stays with its call when Claude Code omits the text, and reaches no other vendor', async () => {
      const answer = await ask(turns['a thought and a signed call'] ?? assert.fail(), true);
      const { model, request: chat } = next(answer, ['fc_1']);
      const anthropic = madeUpModel({ id: 'claude', capability: 'chat' }, 'anthropic');
      const sent = toMessageRequest({ model, stream: false, request: withoutHints(String(chat), anthropic) });
      assert.deepEqual(JSON.parse(sent).messages[1].content, [
        { type: 'tool_use', id: 'fc_1', name: 'get_weather', input: { city: 'Łódź' } },
      ]);
      const openai = madeUpModel({ id: 'gpt', capability: 'chat', chat: { hints: false, effort: true } });
      assert.doesNotMatch(withoutHints(String(chat), openai), /extra_content|thinking|google/);
    });
  });

  describe("Google's thought signatures through responses", () => {
    const request = (more: object): ParsedRequest => {
      const offered = tools.map((name) => ({ type: 'function', name, parameters: {} }));
      const asked = { model: 'gemini-2.5-flash', input: 'Weather?', tools: offered, ...more };
      return parseResponse(Buffer.from(JSON.stringify(asked)));
    };
    const fold = async (texts: readonly string[]) => {
      const all = parseResponseEvents(texts);
      assert.equal(all.pop(), '[DONE]');
      return saidInResponse(all).response;
    };
    const ask = async (parts: readonly Part[], stream: boolean, more: object = {}): Promise<ResponseItem[]> => {
      answerWith(parts);
      const parsed = request({ stream, ...more });
      const { output } = await shownInEachForm(responseView, jobOf(parsed), await execute('responses', parsed), fold);
      return output;
    };
    /** The next turn, as Codex makes it: without ids and states. */
    const next = (output: readonly ResponseItem[], ids: readonly string[]) =>
      request({
        input: [
          { role: 'user', content: 'Weather?' },
          ...output.map(({ id: _, status: __, ...item }) => item),
          ...ids.map((id) => ({ type: 'function_call_output', call_id: id, output: 'Rain.' })),
        ],
      });

    for (const [name, parts] of Object.entries(turns)) {
      for (const stream of [true, false]) {
        it(`a thought signature returns to Gemini through /v1/responses after ${name}, ${stream ? 'streamed' : 'held'}`, async () => {
          // Codex asks for encrypted reasoning only of models that it knows.
          for (const include of [[], ['reasoning.encrypted_content']]) {
            const output = await ask(parts, stream, { include, reasoning: { summary: 'auto' } });
            assert.equal(output.at(-1)?.type, 'function_call');
            await execute('responses', next(output, callIds(parts)));
            assert.deepEqual(
              sentParts(),
              parts.filter((part) => part.thought !== true),
            );
          }
        });
      }
    }

    it('a thought signature makes no item after the last text of /v1/responses', async () => {
      const output = await ask([thought, { text: 'Rain.' }, { text: '', thoughtSignature: 'EhQKEgFyz' }], true);
      assert.deepEqual(
        output.map(({ type }) => type),
        ['reasoning', 'message'],
      );
    });

    it('a thought signature is not sent to OpenAI, which reads only its own reasoning', async () => {
      const parts = turns['parallel calls, each signed'] ?? assert.fail();
      const { request: chat } = next(await ask(parts, true), ['fc_1', 'fc_2']);
      const sent = composeResponseRequest(callOf({ model: 'gpt-5', request: String(chat) }));
      assert.deepEqual(
        JSON.parse(sent).input.map(({ type }: ResponseItem) => type),
        ['message', 'function_call', 'function_call', 'function_call_output', 'function_call_output'],
      );
    });
  });
});

it('readThoughtSignature reads what writeThoughtSignature wrote, and nothing else', () => {
  const text = fc.string({ unit: 'binary', maxLength: 40 });
  fc.assert(
    fc.property(fc.string({ unit: 'binary', minLength: 1, maxLength: 40 }), text, (signature, callId) => {
      const given = { ...(callId !== '' && { callId }), signature };
      assert.deepEqual(readThoughtSignature(writeThoughtSignature(given)), given);
    }),
  );
  for (const foreign of [
    '',
    'EqQBCgIYAhIM1gbcDa9GJwZA2b3h',
    'gAAAAABm',
    'google:',
    'google:x:y',
    'google:0:',
    7,
    null,
  ]) {
    assert.equal(readThoughtSignature(foreign), undefined, String(foreign));
  }
});
