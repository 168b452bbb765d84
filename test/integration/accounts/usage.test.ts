import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import Anthropic from '@anthropic-ai/sdk';
import { countTokens } from 'gpt-tokenizer/encoding/o200k_base';
import { held, streamed } from '../../support/chat-requests.ts';
import { eventually } from '../../support/eventually.ts';
import { loadProduct } from '../../support/gateway.ts';
import { JobRecords, jobIdOf } from '../../support/job-records.ts';
import { sseEvents, textOf } from '../../support/sse-events.ts';
import {
  type FixtureVendor,
  sendJson,
  sendStream,
  startFixtureVendor,
} from '../../vendors/contracts/fixture-vendor.ts';

/** What each message costs beside its text, and the beginning of the answer. */
const frame = 4 + 3;
const uncounted = { sandbox: { fault: { kind: 'no_usage' } } };
const question = 'WORDS:60';
const words = Array.from({ length: 60 }, (_, index) => `word${index + 1}`).join(' ');

/** The estimate of a chat of one message. */
function estimateOf(asked: string, said: string) {
  const [prompt, completion] = [frame + countTokens(asked), countTokens(said)];
  return {
    ...{ prompt_tokens: prompt, completion_tokens: completion, total_tokens: prompt + completion },
    estimated: true,
  };
}

describe('usage that the vendor does not report', () => {
  let records: JobRecords;
  before(async () => {
    records = await JobRecords.start();
  });
  after(() => records.stop());

  /** What the ledger has of the job that answered. */
  async function recorded(response: Response) {
    const { usage, input_tokens: input, output_tokens: output } = await records.ended(jobIdOf(response));
    return { usage: JSON.parse(usage ?? 'null'), input, output };
  }

  it('a held chat without reported usage is counted, and the client and the ledger get it marked as an estimate', async () => {
    const response = await records.post(held(question, uncounted));
    const body = (await response.json()) as { usage: unknown; choices: [{ message: { content: string } }] };
    assert.equal(body.choices[0].message.content, words);
    const usage = estimateOf(question, words);
    assert.deepEqual(body.usage, usage);
    const { prompt_tokens: input, completion_tokens: output } = usage;
    assert.deepEqual(await recorded(response), { usage, input, output });
  });

  it('a stream without reported usage has an estimate in its last chunk if requested, and in the ledger always', async () => {
    const usage = estimateOf(question, words);
    for (const include_usage of [true, false]) {
      const response = await records.post(streamed(question, { ...uncounted, stream_options: { include_usage } }));
      const events = sseEvents(await response.text());
      assert.equal(textOf(events), words);
      const chunks = events.slice(0, -1).map(({ data }) => JSON.parse(data) as { usage?: unknown });
      assert.deepEqual(chunks.at(-1)?.usage, include_usage ? usage : undefined);
      if (!include_usage) assert.ok(chunks.every((chunk) => !('usage' in chunk)));
      assert.deepEqual((await recorded(response)).usage, usage);
    }
  });

  it('a job without reported usage shows an estimate in itself and in its result', async () => {
    const id = await records.postLater(held(question, uncounted));
    await records.ended(id);
    const job = (await records.read(id)) as unknown as { usage: unknown; result: { usage: unknown } };
    assert.deepEqual([job.usage, job.result.usage], [estimateOf(question, words), estimateOf(question, words)]);
  });

  it('an estimate of an answer of tool calls counts their names and arguments, and the tools in the prompt', async () => {
    const parameters = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] };
    const tools = [{ type: 'function', function: { name: 'look_up_the_weather', parameters } }];
    const more = { ...uncounted, tools, tool_choice: 'required' };
    for (const stream of [false, true]) {
      const response = await records.post({ ...held('Paris?', more), stream });
      await response.text();
      const { usage, output } = await recorded(response);
      assert.ok((output as number) > countTokens('look_up_the_weather') + 3, JSON.stringify(usage));
      assert.ok(usage.prompt_tokens > frame + countTokens('Paris?') + countTokens(JSON.stringify(parameters)));
      assert.equal(usage.estimated, true);
    }
  });

  it('an estimate of a prompt counts legacy functions, the schema of the answer, and an image by its detail', async () => {
    const schema = { type: 'object', properties: { city: { type: 'string' } } };
    const url = 'https://example.com/a.png';
    const image = (detail?: string) => [{ type: 'image_url', image_url: { url, ...(detail && { detail }) } }];
    const functions = [{ name: 'look_up_the_weather', parameters: schema }];
    const json_schema = { name: 'city', schema };
    const cases: [more: object, tokens: number][] = [
      [{ functions }, countTokens('Hi') + countTokens(JSON.stringify(functions))],
      [{ response_format: { type: 'json_object' } }, countTokens('Hi')],
      [
        { response_format: { type: 'json_schema', json_schema } },
        countTokens('Hi') + countTokens(JSON.stringify(json_schema)),
      ],
      [{ messages: [{ role: 'user', content: image('low') }] }, 85],
      [{ messages: [{ role: 'user', content: image() }] }, 765],
    ];
    for (const [more, tokens] of cases) {
      const response = await records.post({ ...held('Hi', uncounted), ...more });
      const { usage } = (await response.json()) as { usage: { prompt_tokens: number } };
      assert.equal(usage.prompt_tokens, frame + tokens, JSON.stringify(more));
    }
  });

  it('an estimate states its reasoning tokens, the same for held and streamed answers', async () => {
    const said: unknown[] = [];
    for (const stream of [false, true]) {
      const response = await records.post({ ...held(question, uncounted), model: 'sandbox-reasoning', stream });
      await response.text();
      const { usage } = await recorded(response);
      const { reasoning_tokens: reasoning } = usage.completion_tokens_details;
      assert.ok(reasoning > 10, 'there was some');
      assert.equal(usage.completion_tokens, reasoning + countTokens(words));
      said.push(usage);
    }
    assert.deepEqual(said[0], said[1], 'whole and in pieces it is the same');
  });

  it('an estimate of embeddings counts the inputs, as texts or tokens, in one vendor call or several', async () => {
    const path = '/v1/embeddings';
    const many = Array.from({ length: 100 }, (_, index) => `text number ${index}`);
    const inputs: [input: unknown, tokens: number][] = [
      ['Hello world', countTokens('Hello world')],
      [[1, 2, 3], 3],
      [[[1, 2], [3]], 3],
      [many, many.reduce((sum, text) => sum + countTokens(text), 0)],
    ];
    for (const [input, tokens] of inputs) {
      const response = await records.post({ model: 'sandbox-embedding', input, ...uncounted }, {}, { path });
      const body = (await response.json()) as { usage: unknown; data: unknown[] };
      const usage = { prompt_tokens: tokens, total_tokens: tokens, estimated: true };
      assert.equal(body.data.length, input === many ? 100 : Array.isArray((input as unknown[])[0]) ? 2 : 1);
      assert.deepEqual([body.usage, await recorded(response)], [usage, { usage, input: tokens, output: null }]);
    }
  });

  it('a message without reported usage contains an estimate, held and streamed', async () => {
    const client = new Anthropic({ baseURL: records.gateway.url, apiKey: records.gateway.apiKey, maxRetries: 0 });
    const asked = {
      ...{ model: 'sandbox-chat', max_tokens: 1000, messages: [{ role: 'user' as const, content: question }] },
      ...uncounted,
    };
    const [prompt, said] = [frame + countTokens(question), countTokens(words)];
    for (const message of [await client.messages.create(asked), await client.messages.stream(asked).finalMessage()]) {
      const { input_tokens: input, output_tokens: output } = message.usage;
      assert.deepEqual([input, output], [prompt, said]);
    }
    const path = '/v1/messages';
    const whole = (await (await records.post(asked, {}, { path })).json()) as { usage: unknown };
    const events = sseEvents(await (await records.post({ ...asked, stream: true }, {}, { path })).text());
    const ending = events.map(({ data }) => JSON.parse(data)).find(({ type }) => type === 'message_delta');
    for (const usage of [whole.usage, ending.usage]) assert.equal(usage.estimated, true);
  });

  for (const model of ['sandbox-chat', 'sandbox-responses']) {
    it(`a response of ${model} without reported usage contains an estimate, held and streamed`, async () => {
      const client = records.gateway.client();
      const asked = { model, input: question, instructions: 'Be brief.', ...uncounted };
      const whole = await client.responses.create(asked);
      const parts = await client.responses.stream(asked).finalResponse();
      for (const { usage, id } of [whole, parts]) {
        assert.equal(usage?.input_tokens, frame + 4 + countTokens(question) + countTokens('Be brief.'));
        assert.equal(usage?.output_tokens, countTokens(words));
        assert.equal((usage as { estimated?: unknown }).estimated, true);
        const row = await records.ended(id.slice('resp_'.length));
        assert.deepEqual([row.input_tokens, row.output_tokens], [usage?.input_tokens, usage?.output_tokens]);
      }
    });
  }

  for (const model of ['sandbox-chat', 'sandbox-instruct']) {
    it(`an estimate of a completion of ${model} counts all prompts and choices, and no echoed prompt as output`, async () => {
      const path = '/v1/completions';
      const plain = { model, prompt: ['WORDS:20', 'WORDS:30'], max_tokens: 100, ...uncounted };
      for (const body of [plain, { ...plain, echo: true }, { ...plain, echo: true, stream: true }]) {
        const response = await records.post(body, {}, { path });
        await response.text();
        const { usage, output } = await recorded(response);
        assert.equal(usage.estimated, true);
        assert.equal(usage.prompt_tokens, countTokens('WORDS:20') + countTokens('WORDS:30'));
        const said =
          countTokens(words.slice(0, words.indexOf(' word21'))) + countTokens(words.slice(0, words.indexOf(' word31')));
        assert.ok(Math.abs((output as number) - said) <= 2, `${output} of ${said}`);
      }
    });
  }

  it('an estimate of a prompt and an answer too long to tokenize whole is right within 5 % and 10 %', async () => {
    const prose = 'The quick brown fox jumps over the lazy dog. '.repeat(8000);
    const response = await records.post(streamed(`${prose} WORDS:20000`, uncounted));
    await response.text();
    const { usage } = await recorded(response);
    assert.ok(Math.abs(usage.prompt_tokens / countTokens(prose) - 1) < 0.05, JSON.stringify(usage));
    const said = Array.from({ length: 20_000 }, (_, index) => ` word${index + 1}`).join('');
    assert.ok(Math.abs(usage.completion_tokens / countTokens(said) - 1) < 0.1, JSON.stringify(usage));
  });

  it('an estimate of a frame too large to parse follows its size', async () => {
    const sandbox = { fault: { kind: 'large_event', bytes: 400_000 } };
    const cut = await records.post(streamed('WORDS:1000@50', { sandbox }));
    const reader = (cut.body as ReadableStream<Uint8Array>).getReader();
    let size = 0;
    while (size < 400_000) size += (await reader.read()).value?.length ?? 0;
    await reader.cancel();
    const { usage } = await recorded(cut);
    assert.ok(usage.completion_tokens >= 99_000 && usage.completion_tokens < 102_000, JSON.stringify(usage));
  });
});

describe('countExchange', () => {
  it('countExchange counts no text for large events of a response, such as pictures and repeated deltas', async () => {
    const { countExchange } =
      await loadProduct<typeof import('../../../workers/usage/count-exchange.ts')>('workers/usage/count-exchange');
    const events = ['Hello', ' world'].map((delta) =>
      JSON.stringify({ type: 'response.output_text.delta', output_index: 0, delta }),
    );
    const request = JSON.stringify({ input: [{ type: 'message', role: 'user', content: 'Hi' }] });
    const length = events.join('').length;
    const counts = countExchange({ endpoint: 'responses', request, frames: events, length, largeLength: 1_000_000 });
    assert.deepEqual(counts, { prompt: frame + 1, completion: 2, reasoning: 0 });
  });
});

describe('usage that the vendor reports', () => {
  let vendor: FixtureVendor;
  let records: JobRecords;
  before(async () => {
    vendor = await startFixtureVendor();
    records = await JobRecords.start({ settings: { OPENAI_API_KEY: 'sk-test', OPENAI_BASE_URL: vendor.baseUrl } });
  });
  after(async () => {
    await records.stop();
    await vendor.close();
  });

  const usage = {
    prompt_tokens: 9,
    completion_tokens: 3,
    total_tokens: 12,
    prompt_tokens_details: { cached_tokens: 4, audio_tokens: 0 },
    completion_tokens_details: { reasoning_tokens: 2 },
    cost_in_usd_ticks: 158_500,
    energy: { joules: [1.5], meter: null },
  };
  const body = { ...held('Hi'), model: 'gpt-4o-mini' };
  const recordedUsage = async (response: Response) => JSON.parse((await records.ended(jobIdOf(response))).usage ?? '');

  it('a held chat passes on and records the usage of its vendor unchanged, with unknown fields', async () => {
    const choices = [{ index: 0, message: { role: 'assistant', content: 'Hello.' }, finish_reason: 'stop' }];
    vendor.answer((response) =>
      sendJson(response, 200, JSON.stringify({ id: 'x', object: 'chat.completion', choices, usage })),
    );
    const response = await records.post(body);
    assert.deepEqual(((await response.json()) as { usage: unknown }).usage, usage);
    assert.deepEqual(await recordedUsage(response), usage);
  });

  it('a stream always requests the usage of its vendor, shows it only on request, and records it unchanged', async () => {
    const chunk = (fields: object) =>
      `data: ${JSON.stringify({ id: 'x', object: 'chat.completion.chunk', ...fields })}\n\n`;
    const parts = [
      chunk({ choices: [{ index: 0, delta: { role: 'assistant', content: 'Hello.' }, finish_reason: null }] }),
      chunk({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] }),
      chunk({ choices: [], usage }),
      'data: [DONE]\n\n',
    ];
    vendor.answer((response) => sendStream(response, parts));
    for (const options of [undefined, { include_usage: false }, { include_usage: true }]) {
      const response = await records.post({ ...body, stream: true, ...(options && { stream_options: options }) });
      const events = sseEvents(await response.text());
      assert.equal(textOf(events), 'Hello.');
      const { stream_options: asked } = JSON.parse(vendor.requests.at(-1)?.body ?? '');
      assert.deepEqual(asked, { include_usage: true });
      const shown = events.slice(0, -1).filter(({ data }) => JSON.parse(data).usage != null);
      assert.deepEqual(
        shown.map(({ data }) => JSON.parse(data).usage),
        options?.include_usage ? [usage] : [],
      );
      await eventually(async () => assert.deepEqual(await recordedUsage(response), usage));
    }
  });
});
