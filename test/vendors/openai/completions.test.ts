import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it } from 'node:test';
import { executeChat } from '../../../workers/execute/execute.ts';
import { createOpenAiDialect } from '../../../workers/vendors/openai/dialect.ts';
import { sumOfAll, sumUsage } from '../../../workers/vendors/support/sum-usage.ts';
import { madeUpModel } from '../../support/routed-model.ts';
import {
  callOf,
  collect,
  type FixtureVendor,
  sendJson,
  sendStream,
  startFixtureVendor,
} from '../contracts/fixture-vendor.ts';
import { chunk, events, frameOf, usage, usageChunk } from '../recorded/recorded-openai.ts';

/** Chunks after https://platform.openai.com/docs/api-reference/completions, in the state of openai-node 6.49.0. */
const head = { id: 'cmpl-7iA7iJjj8V2zOkCGvWF2hAkDWBQZe', object: 'text_completion', created: 1690759702 };
const completionChunk = (choices: object[], more: object = {}): Record<string, unknown> => ({
  ...{ ...head, model: 'gpt-3.5-turbo-instruct', choices },
  ...more,
});
const choice = (text: string, more: object = {}) => ({ text, index: 0, logprobs: null, finish_reason: null, ...more });
const said = [
  completionChunk([choice('This')]),
  completionChunk([choice(' is'), choice('That', { index: 1 })]),
  completionChunk([choice('', { finish_reason: 'stop' })]),
  completionChunk([choice('', { index: 1, finish_reason: 'length' })]),
];

const row = madeUpModel({ id: 'a-model', capability: 'chat' });

describe('legacy completions of the OpenAI dialect', () => {
  let server: FixtureVendor;
  let vendor: ReturnType<typeof createOpenAiDialect>;
  before(async () => {
    server = await startFixtureVendor();
    vendor = createOpenAiDialect({ name: 'openai', baseUrl: server.baseUrl, apiKey: 'sk-test-0123456789' });
  });
  beforeEach(() => {
    server.requests.length = 0;
  });
  after(async () => {
    await vendor.close();
    await server.close();
  });

  it("OpenAI completions posts the request unread, and streams the chunks without the gateway's own fields", async () => {
    const counted = completionChunk([], { usage });
    server.answer((response) => sendStream(response, [events([...said, counted])]));
    const sink = collect();
    const request = '{"prompt":[1,2],"suffix":"x","best_of":1,"something_new":{}}';
    const end = await vendor.complete(callOf({ model: 'gpt-3.5-turbo-instruct', request }), sink);
    assert.deepEqual(sink.data(), said.map(frameOf));
    assert.deepEqual(end, { body: JSON.stringify({ usage }), usage, tier: undefined });
    assert.equal(server.requests[0]?.url, '/v1/completions');
    assert.deepEqual(JSON.parse(server.requests[0]?.body ?? ''), {
      ...{ model: 'gpt-3.5-turbo-instruct', stream: true, stream_options: { include_usage: true } },
      ...JSON.parse(request),
    });
  });

  it('OpenAI completions returns the whole body of a held call, and turns a whole answer to a stream into one chunk', async () => {
    const choices = [choice('This is a test.', { finish_reason: 'length' })];
    server.answer((response) => sendJson(response, 200, JSON.stringify(completionChunk(choices, { usage }))));
    const held = await vendor.complete(callOf({ stream: false }), collect());
    assert.deepEqual(held, { body: JSON.stringify({ choices, usage }), usage, tier: undefined });
    const sink = collect();
    const end = await vendor.complete(callOf(), sink);
    assert.deepEqual(sink.data(), [{ choices: [{ ...choices[0] }] }]);
    assert.deepEqual(end.usage, usage);
    server.answer((response) => sendJson(response, 200, JSON.stringify(completionChunk([{ message: {} }]))));
    await assert.rejects(vendor.complete(callOf(), collect()), { code: 'server_error' });
  });

  it('OpenAI completions returns whole choices with all fields of a choice, and none without a text', async () => {
    const answerWith = (choices: object[]) =>
      server.answer((response) => sendJson(response, 200, JSON.stringify(completionChunk(choices, { usage }))));
    const heldChoices = async () => {
      const { body } = await vendor.complete(callOf({ stream: false }), collect());
      return (JSON.parse(body) as { choices: unknown }).choices;
    };
    // Ollama leaves out the log probabilities, some proxies the reason.
    answerWith([{ text: 'Hi' }, { text: null, finish_reason: 'content_filter' }]);
    assert.deepEqual(await heldChoices(), [
      { text: 'Hi', index: 0, logprobs: null, finish_reason: 'stop' },
      { text: '', index: 1, logprobs: null, finish_reason: 'content_filter' },
    ]);
    for (const broken of [{}, { text: null }, { text: ['Hi'] }, { message: { content: 'Hi' } }]) {
      answerWith([{ ...broken, finish_reason: 'stop' }]);
      await assert.rejects(heldChoices(), { code: 'server_error', message: /no text/ }, JSON.stringify(broken));
    }
  });

  it('OpenAI completions ends each choice of a stream whose vendor gives no reason, if the stream itself is whole', async () => {
    const chunks = [
      completionChunk([{ text: 'Hi', index: 0 }]),
      completionChunk([choice('Ho', { index: 1, finish_reason: 'length' })]),
      completionChunk([choice(' there')]),
    ];
    server.answer((response) => sendStream(response, [events(chunks)]));
    const sink = collect();
    await vendor.complete(callOf(), sink);
    const frames = sink.data() as { choices: { index: number; finish_reason: string | null }[] }[];
    const reasons = frames.flatMap(({ choices }) => choices.map((each) => [each.index, each.finish_reason]));
    assert.deepEqual(reasons, [
      [0, null],
      [1, 'length'],
      [0, null],
      [0, 'stop'],
    ]);
    assert.deepEqual(frames.at(-1), { choices: [{ text: '', index: 0, logprobs: null, finish_reason: 'stop' }] });
  });

  it('OpenAI completions fails with server_error before the first chunk, and with stream_interrupted after it', async () => {
    server.answer((response) => sendStream(response, [events(said.slice(0, 3), '')]));
    await assert.rejects(vendor.complete(callOf(), collect()), { code: 'stream_interrupted' });
    server.answer((response) => sendStream(response, [': nothing\n\n']));
    await assert.rejects(vendor.complete(callOf(), collect()), { code: 'server_error' });
  });

  const complete = (request: object, stream = false, sink = collect()) =>
    executeChat({
      ...{ vendor, row, endpoint: 'completions', keep: false, sink },
      call: callOf({ request: JSON.stringify(request), stream }),
    });

  it('completions over a chat send a user message per prompt and max_completion_tokens, and keep the other fields', async () => {
    const body = JSON.stringify({ choices: [{ index: 0, message: { content: 'Hi' }, finish_reason: 'stop' }], usage });
    server.answer((response) => sendJson(response, 200, body));
    const rest = { temperature: 0.5, stop: ['x'], user: 'ann', seed: 7, something_new: [1] };
    await complete({ prompt: ['a', ''], n: 1, best_of: 1, suffix: '', echo: false, logprobs: null, ...rest });
    await complete({ prompt: 'c', max_tokens: 5, logprobs: 3 });
    const bodies = server.requests.map((request) => JSON.parse(request.body));
    const messages = (content: string) => [{ role: 'user', content }];
    const first = { model: 'gpt-4o-mini', n: 1, ...rest, max_completion_tokens: 16 };
    assert.deepEqual(
      bodies.slice(0, 2).sort((one, other) => other.messages[0].content.localeCompare(one.messages[0].content)),
      [
        { ...first, messages: messages('a') },
        { ...first, messages: messages('') },
      ],
    );
    const logged = { logprobs: true, top_logprobs: 3, max_completion_tokens: 5 };
    assert.deepEqual(bodies[2], { model: 'gpt-4o-mini', messages: messages('c'), ...logged });
    assert.ok(server.requests.every(({ url }) => url === '/v1/chat/completions'));
  });

  it('completions over a chat show refusals as text, and unknown finish reasons as stop', async () => {
    const choices = [
      { index: 0, message: { content: null, refusal: 'I cannot.' }, finish_reason: 'stop' },
      { index: 1, message: { content: 'Hm', reasoning_content: 'secret' }, finish_reason: 'tool_calls' },
      { index: 2, message: { content: '' }, finish_reason: 'content_filter' },
    ];
    server.answer((response) => sendJson(response, 200, JSON.stringify({ choices, usage })));
    const end = await complete({ prompt: 'x', n: 3 });
    const shown = [choice('I cannot.'), choice('Hm', { index: 1 }), choice('', { index: 2 })];
    assert.deepEqual(JSON.parse(end.body).choices, [
      { ...shown[0], finish_reason: 'stop' },
      { ...shown[1], finish_reason: 'stop' },
      { ...shown[2], finish_reason: 'content_filter' },
    ]);
    server.answer((response) => sendJson(response, 200, '{"choices":[{"text":"x"}]}'));
    await assert.rejects(complete({ prompt: 'x' }), { code: 'server_error', message: /has no message/ });
  });

  it('completions over several chats are interrupted when one fails after another has been heard', async () => {
    const token = (content: string, more: object = {}) => chunk([{ delta: { content }, ...more }]);
    const whole = [token('', {}), token('Hi'), chunk([{ delta: {}, finish_reason: 'stop' }]), usageChunk];
    let parts = [': nothing\n\n'];
    let isHeard = Promise.resolve();
    server.answer((response, { body }) => {
      if (body.includes('good')) sendStream(response, [events(whole)]);
      else void isHeard.then(() => sendStream(response, parts));
    });
    /** A good prompt and a bad one, whose answer waits until the good one's has been heard. */
    const completeBoth = (): Promise<unknown> => {
      const sink = collect();
      let hear: () => void = () => undefined;
      isHeard = new Promise((resolve) => {
        hear = resolve;
      });
      const write = (frame: Parameters<typeof sink.write>[0]): boolean => {
        hear();
        return sink.write(frame);
      };
      return complete({ prompt: ['good', 'bad'] }, true, { ...sink, write });
    };
    await assert.rejects(completeBoth(), { code: 'stream_interrupted' });
    await assert.rejects(complete({ prompt: ['bad', 'bad'] }, true), { code: 'server_error' });
    parts = ['data: {"error":{"code":429}}\n\n'];
    await assert.rejects(completeBoth(), { code: 'rate_limit_exceeded' });
  });

  it('completions over a chat hold the vendor back while the relay is full', async () => {
    const tokens = Array.from({ length: 20 }, (_, index) => chunk([{ delta: { content: `${index} ` } }]));
    const last = chunk([{ delta: {}, finish_reason: 'stop' }]);
    server.answer((response) =>
      sendStream(response, [...tokens, last].map((each) => events([each], '')).concat('data: [DONE]\n\n')),
    );
    const sink = collect();
    let waits = 0;
    const slow = {
      ...sink,
      write: (frame: Parameters<typeof sink.write>[0]) => sink.write(frame) && false,
      drained: async () => {
        waits += 1;
      },
    };
    await complete({ prompt: 'x' }, true, slow);
    assert.equal(sink.frames.length, 21);
    assert.ok(waits > 0);
  });
});

describe('sumOfAll', () => {
  it('sumOfAll returns null as soon as one call has counted nothing, because the others would be all that is charged', () => {
    const counted = { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 };
    assert.deepEqual(sumOfAll([counted, counted], false), {
      prompt_tokens: 6,
      completion_tokens: 4,
      total_tokens: 10,
    });
    const partly = [null, {}, { prompt_tokens: '3', completion_tokens: '2' }, { prompt_tokens: 3 }];
    for (const none of partly) assert.equal(sumOfAll([counted, none], false), null, JSON.stringify(none));
    assert.deepEqual(sumOfAll([{ prompt_tokens: 3 }], true), { prompt_tokens: 3 });
  });
});

describe('sumUsage', () => {
  it('sumUsage adds up usages with their details, and returns null when nobody counted', () => {
    assert.equal(sumUsage([]), null);
    assert.equal(sumUsage([null, null]), null);
    const one = { total_tokens: 1, details: { cached: 1 }, tier: 'a' };
    const other = { total_tokens: 2, details: { cached: 2, audio: 3 }, more: 4 };
    const sum = { total_tokens: 3, details: { cached: 3, audio: 3 }, tier: 'a', more: 4 };
    assert.deepEqual(sumUsage([one, null, other]), sum);
  });
});
