import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createGemini } from '../../../workers/vendors/gemini/gemini.ts';
import { callOf, collect, sendJson, startFixtureVendor } from '../contracts/fixture-vendor.ts';
import { answer } from '../recorded/recorded-gemini.ts';

type Fields = Record<string, unknown>;

const apiKey = 'AIzaSyTest0123456789abcdefghijklmnopqrs';
const foreign = 'skip_thought_signature_validator';
const signed = { extra_content: { google: { thought_signature: 'b2YgYW5vdGhlciBrZXk=' } } };
const corrupted = 'Corrupted thought signature.';

/** Two rounds of a tool loop whose calls, and whose text, another key's Gemini has signed. */
function loopOf(more: object): Fields[] {
  const round = (id: string): Fields[] => [
    {
      ...{ role: 'assistant', content: 'Let me look.', ...more },
      tool_calls: [
        { id, type: 'function', function: { name: 'f', arguments: '{"id":9007199254740993}' }, ...more },
        { id: `${id}b`, type: 'function', function: { name: 'g', arguments: '{}' } },
      ],
    },
    { role: 'tool', tool_call_id: id, content: 'done' },
    { role: 'tool', tool_call_id: `${id}b`, content: 'Error: no', extra_content: { anthropic: { is_error: true } } },
  ];
  return [{ role: 'user', content: 'Go.' }, ...round('c1'), ...round('c2')];
}

/** What Gemini is sent that refuses every signature but the documented stand-in, and the error of the call. */
async function ask(
  messages: Fields[],
  { stream = false, message = corrupted, model = 'gemini-3.8-flash', refuses = /"thoughtSignature":"(?!skip)/ } = {},
) {
  const server = await startFixtureVendor();
  const vendor = createGemini({ name: 'gemini', baseUrl: server.baseUrl, apiKey });
  const refusal = { error: { code: 400, message, status: 'INVALID_ARGUMENT' } };
  server.answer((response, { body }) => {
    const isRefused = refuses.test(body) || message === 'all' || server.requests.length > 2;
    sendJson(response, isRefused ? 400 : 200, JSON.stringify(isRefused ? refusal : answer));
  });
  const call = callOf({ model, stream, request: JSON.stringify({ messages }) });
  const error = await vendor.chat(call, collect()).then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  await vendor.close();
  await server.close();
  return { sent: server.requests.map(({ body }) => body), error };
}

describe("signatures of another key's or vendor's Gemini", () => {
  it('a conversation whose signatures are refused is sent once more with the stand-in for foreign ones, streamed and not', async () => {
    for (const stream of [false, true]) {
      const vertex =
        'Unable to submit request because Thought signature is not valid.. Learn more: https://cloud.google.com';
      for (const message of [corrupted, vertex]) {
        const { sent, error } = await ask(loopOf(signed), { stream, message });
        assert.equal(error, undefined, message);
        assert.equal(sent.length, 2);
        const signatures = [...(sent[1] ?? '').matchAll(/"thoughtSignature":"([^"]*)"/g)].map(([, found]) => found);
        assert.deepEqual(signatures, [foreign, foreign]);
        assert.match(sent[1] ?? '', /"id":9007199254740993\b/);
        assert.match(sent[1] ?? '', /"error":"no"/);
      }
    }
  });

  it("a conversation with another model's calls is sent once more with the stand-in where a model of the second generation misses signatures", async () => {
    const message =
      'Function call is missing a thought_signature in functionCall parts. This is required for tools to work.';
    const { sent, error } = await ask(loopOf({}), {
      ...{ message, model: 'gemini-2.5-flash' },
      refuses: /^(?!.*"thoughtSignature")/s,
    });
    assert.equal(error, undefined);
    const signatures = sent.map((body) =>
      [...body.matchAll(/"thoughtSignature":"([^"]*)"/g)].map(([, found]) => found),
    );
    assert.deepEqual(signatures, [[], [foreign, foreign]]);
    const still = await ask(loopOf({}), { message, model: 'gemini-2.5-flash', refuses: /./ });
    assert.deepEqual([still.sent.length, (still.error as Fields).code], [2, 'invalid_request_error']);
  });

  it('another refusal, and one of a conversation without signatures, is the answer', async () => {
    const other = await ask(loopOf(signed), { message: 'Please use a valid role.' });
    assert.deepEqual([other.sent.length, (other.error as Fields).code], [1, 'invalid_request_error']);
    const unsigned = await ask(loopOf({}), { message: 'all' });
    assert.deepEqual([unsigned.sent.length, (unsigned.error as Fields).code], [1, 'invalid_request_error']);
  });
});
