import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { newJobId } from '../../../shared/ids.ts';
import { createJobState, readJobState } from '../../../shared/jobs/job-state.ts';
import { formatDollars } from '../../../shared/money/cost.ts';
import { CapabilityQueue, type QueuedJob } from '../../../shared/queue/queue.ts';
import { connectRedis } from '../../../shared/redis/redis.ts';
import { createLogger } from '../../../shared/runtime/log.ts';
import { held, streamed } from '../../support/chat-requests.ts';
import { eventually } from '../../support/eventually.ts';
import { JobRecords, jobIdOf, later } from '../../support/job-records.ts';
import { readSse } from '../../support/sse-events.ts';

/** Nano-dollars for one token of the sandbox's texts: 0.01 dollars for a million in, 0.0025 from its cache, 0.04 out. */
function textCost({ prompt, cached = 0, completion }: { prompt: number; cached?: number; completion: number }): number {
  return Math.ceil((prompt - cached) * 10 + cached * 2.5 + completion * 40);
}

interface ChatUsage {
  readonly prompt_tokens: number;
  readonly completion_tokens: number;
  readonly prompt_tokens_details?: { readonly cached_tokens: number };
}

function chatCost({ prompt_tokens: prompt, completion_tokens: completion, prompt_tokens_details }: ChatUsage): number {
  return textCost({ prompt, completion, cached: prompt_tokens_details?.cached_tokens ?? 0 });
}

interface ResponseUsage {
  readonly input_tokens: number;
  readonly output_tokens: number;
  readonly input_tokens_details: { readonly cached_tokens: number };
}

function responseCost({ input_tokens: prompt, output_tokens: completion, ...usage }: ResponseUsage): number {
  return textCost({ prompt, completion, cached: usage.input_tokens_details.cached_tokens });
}

describe('cost of an answer', () => {
  let records: JobRecords;
  before(async () => {
    records = await JobRecords.start({
      configuration: {
        vendors: { broken: { like: 'openai', base_url: 'http://127.0.0.1:9/v1', api_key: 'none' } },
        models: {
          'two-routes': {
            capability: 'chat',
            prices: { input: 1, output: 1 },
            routes: [
              { vendor: 'broken', model: 'm', order: 0, prices: { input: 1, output: 1 } },
              { vendor: 'sandbox', model: 'sandbox-chat', order: 1, prices: { input: 3, output: 5 } },
            ],
          },
          unpriced: { capability: 'chat', routes: [{ vendor: 'sandbox', model: 'sandbox-chat' }] },
        },
      },
    });
  });
  after(() => records?.stop());

  /** What a job has cost by the database, and its usage there. */
  async function recorded(id: string) {
    const { cost, usage, outcome } = await records.ended(id);
    return { cost, outcome, usage: JSON.parse(usage ?? 'null') };
  }

  /** A held answer has cost this much, by its header and by the database. */
  async function assertCost(response: Response, cost: number): Promise<void> {
    assert.ok(cost > 0);
    assert.equal(response.headers.get('x-sluice-cost'), formatDollars(cost));
    assert.equal((await recorded(jobIdOf(response))).cost, cost);
  }

  async function bodyOf(response: Response): Promise<{ usage: never }> {
    assert.equal(response.status, 200);
    return (await response.json()) as { usage: never };
  }

  it('a chat costs its tokens at their prices, in the header, the job and the database', async () => {
    const response = await records.post(held('Repeat: one two three'));
    await assertCost(response, chatCost((await bodyOf(response)).usage));
    const id = await records.postLater(held('Repeat: four'));
    const { cost, usage } = await recorded(id);
    assert.equal(cost, chatCost(usage));
    const job = (await records.read(id)) as unknown as { cost: number };
    assert.equal(job.cost, chatCost(usage) / 1e9);
  });

  it('a streamed chat has its cost in the database only, because its headers are sent first', async () => {
    const response = await records.post(streamed('Repeat: one two three'));
    for await (const _ of readSse(response));
    assert.equal(response.headers.get('x-sluice-cost'), null);
    const { cost, usage } = await recorded(jobIdOf(response));
    assert.ok(usage.completion_tokens > 0);
    assert.equal(cost, chatCost(usage));
  });

  it('completions, responses, messages and embeddings cost their tokens at the prices of the model', async () => {
    const prompt = 'Repeat: one two';
    const completion = await records.post({ model: 'sandbox-instruct', prompt }, {}, { path: '/v1/completions' });
    await assertCost(completion, chatCost((await bodyOf(completion)).usage));
    for (const model of ['sandbox-chat', 'sandbox-responses']) {
      const response = await records.post({ model, input: prompt, store: false }, {}, { path: '/v1/responses' });
      await assertCost(response, responseCost((await bodyOf(response)).usage));
    }
    const messages = [{ role: 'user', content: prompt }];
    const asked = { model: 'sandbox-chat', max_tokens: 50, messages };
    const message = await records.post(asked, {}, { path: '/v1/messages' });
    await bodyOf(message);
    const { usage } = await recorded(jobIdOf(message));
    await assertCost(message, chatCost(usage));
    const input = 'one two three four five';
    const embedding = await records.post({ model: 'sandbox-embedding', input }, {}, { path: '/v1/embeddings' });
    const counted = (await bodyOf(embedding)).usage as { prompt_tokens: number };
    await assertCost(embedding, counted.prompt_tokens);
  });

  it('an image request costs a price per image, and its record counts the images', async () => {
    const asked = { model: 'sandbox-image', prompt: 'A sea otter', n: 2, size: '256x256' };
    const response = await records.post(asked, {}, { path: '/v1/images/generations' });
    assert.equal(response.status, 200);
    await assertCost(response, 2_000_000);
    assert.equal((await recorded(jobIdOf(response))).usage.images, 2);
  });

  it('speech costs a price per character of its text, and an emoji counts as one', async () => {
    const asked = { model: 'sandbox-speech', voice: 'alloy', input: 'Hello 👋', response_format: 'wav' };
    const response = await records.post(asked, {}, { path: '/v1/audio/speech' });
    await response.arrayBuffer();
    const { cost, usage } = await recorded(jobIdOf(response));
    assert.deepEqual([cost, usage.characters], [7000, 7]);
  });

  it('a transcript costs the length of its audio, and a streamed one its tokens', async () => {
    const spoken = { model: 'sandbox-speech', voice: 'alloy', input: 'One two three.', response_format: 'wav' };
    const speech = await records.post(spoken, {}, { path: '/v1/audio/speech' });
    const audio = new Blob([await speech.arrayBuffer()], { type: 'audio/wav' });
    const transcribe = async (stream: boolean): Promise<Response> => {
      const form = new FormData();
      form.set('model', 'sandbox-transcribe');
      if (stream) form.set('stream', 'true');
      form.set('file', audio, 'speech.wav');
      const headers = { authorization: `Bearer ${records.gateway.apiKey}` };
      return await fetch(`${records.gateway.url}/v1/audio/transcriptions`, { method: 'POST', body: form, headers });
    };
    const whole = await transcribe(false);
    const { seconds } = (await bodyOf(whole)).usage as { seconds: number };
    await assertCost(whole, seconds * 10_000);
    const grown = await transcribe(true);
    await grown.text();
    const { cost, usage } = await recorded(jobIdOf(grown));
    const { text_tokens: text, audio_tokens: heard } = usage.input_token_details;
    assert.equal(cost, text * 10 + heard * 20 + usage.output_tokens * 40);
  });

  it('a video costs its length in seconds', async () => {
    const asked = {
      model: 'sandbox-video',
      prompt: 'A sea otter',
      seconds: '8',
      sandbox: { video: { duration_ms: 0 } },
    };
    const response = await records.post(asked, {}, { path: '/v1/videos' });
    const { id } = (await response.json()) as { id: string };
    const { cost, usage } = await recorded(id.slice('video_'.length));
    assert.deepEqual([cost, usage], [8_000_000, { seconds: 8 }]);
  });

  it('a request that fails before any output costs nothing', async () => {
    const fault = { sandbox: { fault: { kind: 'status', status: 400 } } };
    const response = await records.post(held('hi', fault));
    assert.equal(response.status, 400);
    await response.text();
    assert.equal(response.headers.get('x-sluice-cost'), '0');
    assert.equal((await recorded(jobIdOf(response))).cost, 0);
    const image = { model: 'sandbox-image', prompt: 'A sea otter', ...fault };
    const failed = await records.post(image, {}, { path: '/v1/images/generations' });
    assert.equal(failed.status, 400);
    assert.equal((await recorded(jobIdOf(failed))).cost, 0);
  });

  it('a stream that breaks off or loses its client costs the prompt and the output so far', async () => {
    const broken = await records.post(
      streamed('WORDS:100', { sandbox: { fault: { kind: 'reset', after_tokens: 20 } } }),
    );
    for await (const _ of readSse(broken));
    const { outcome, cost, usage } = await recorded(jobIdOf(broken));
    assert.equal(outcome, 'failed');
    assert.ok(usage.completion_tokens >= 20 && usage.estimated);
    assert.equal(cost, chatCost(usage));
    const left = await records.post(streamed('WORDS:1000@50'));
    let events = 0;
    for await (const _ of readSse(left)) if (++events === 5) break;
    const cut = await recorded(jobIdOf(left));
    assert.equal(cut.outcome, 'cancelled');
    assert.ok(cut.usage.completion_tokens > 0 && cut.usage.completion_tokens < 1000);
    assert.equal(cut.cost, chatCost(cut.usage));
  });

  it('an answer costs the prices of the route that served it, and an unpriced route leaves the cost unknown', async () => {
    const response = await records.post(held('Repeat: one two three', { model: 'two-routes' }));
    const { usage } = (await bodyOf(response)) as unknown as { usage: ChatUsage };
    assert.equal(response.headers.get('x-sluice-vendor'), 'sandbox');
    await assertCost(response, usage.prompt_tokens * 3000 + usage.completion_tokens * 5000);
    const free = await records.post(held('Repeat: one', { model: 'unpriced' }));
    await bodyOf(free);
    assert.equal(free.headers.get('x-sluice-cost'), null);
    assert.equal((await recorded(jobIdOf(free))).cost, null);
  });

  it('the access log has the cost of a request', async () => {
    const response = await records.post(held('Repeat: logged'));
    await bodyOf(response);
    const line = `"cost":"${response.headers.get('x-sluice-cost')}"`;
    await eventually(async () =>
      assert.ok(records.gateway.apis[0]?.output().includes(line), 'the line is not written'),
    );
  });

  it('an asynchronous job has a null cost until it ends', async () => {
    const response = await records.post(held('WORDS:20@20'), later);
    const job = (await response.json()) as { cost: unknown };
    assert.equal(job.cost, null);
  });

  it('the output limit that the gateway sets bounds the completion tokens of every endpoint', async () => {
    const { client: redis, close } = await connectRedis(records.gateway.redisUrl, createLogger('silent', 'test').log);
    const queue = new CapabilityQueue('chat', redis);
    try {
      const messages = [{ role: 'user', content: 'WORDS:50' }];
      const asked: readonly [endpoint: string, model: string, request: object][] = [
        ['chat', 'sandbox-chat', { messages, max_completion_tokens: null }],
        ['completions', 'sandbox-instruct', { prompt: 'WORDS:50' }],
        ['completions', 'sandbox-chat', { prompt: 'WORDS:50' }],
        ['responses', 'sandbox-chat', { input: messages }],
        ['responses', 'sandbox-responses', { input: messages }],
      ];
      for (const [endpoint, model, request] of asked) {
        const now = Date.now();
        const job: QueuedJob = {
          ...{
            id: newJobId(),
            account: 'default',
            apiKeyId: 'key',
            capability: 'chat',
            endpoint,
            model,
            stream: false,
          },
          ...{ createdAt: now, deadlineAt: now + 60_000, retentionMs: 60_000, idempotency: '', viewOptions: '{}' },
          ...{ request: JSON.stringify(request), outputLimit: 20 },
        };
        await createJobState(redis, job, 'nobody');
        await queue.enqueue(job);
        const usage = await eventually(async () => {
          const state = await readJobState(redis, job.id);
          assert.equal(state?.outcome, 'completed', `${endpoint} ${model} ${state?.errorCode}`);
          return JSON.parse(state?.usage ?? '{}');
        });
        assert.equal(usage.completion_tokens ?? usage.output_tokens, 20, `${endpoint} by ${model}`);
      }
    } finally {
      await queue.close();
      await close();
    }
  });
});
