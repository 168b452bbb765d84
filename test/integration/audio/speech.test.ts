import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { Redis } from 'ioredis';
import { MPEGDecoder } from 'mpg123-decoder';
import type OpenAI from 'openai';
import type { JobObject } from '../../../api/pipeline/job-object.ts';
import { jobKeys } from '../../../shared/redis/keys.ts';
import { endedJob } from '../../support/ended-job.ts';
import { eventually } from '../../support/eventually.ts';
import { TestGateway } from '../../support/gateway.ts';
import { leftovers } from '../../support/leftovers.ts';
import { makeApiKey } from '../../support/make-api-key.ts';
import { sseEvents, type WireEvent } from '../../support/sse-events.ts';
import { vendorCalls } from '../../support/vendor-journal.ts';

type Request = OpenAI.Audio.SpeechCreateParams;

const types = { mp3: 'audio/mpeg', wav: 'audio/wav', flac: 'audio/flac', pcm: 'audio/pcm' } as const;
const text = 'The quick brown fox jumps over the lazy dog.';

function speech(more: object = {}): Request {
  return { model: 'sandbox-speech', voice: 'alloy', input: text, ...more };
}

interface SpeechEvent {
  readonly type: string;
  readonly audio?: string;
  readonly usage?: { total_tokens: number };
  readonly url?: string;
}

function read(events: readonly WireEvent[]): { audio: Buffer; done: SpeechEvent } {
  const parsed = events.map(({ data }) => JSON.parse(data) as SpeechEvent);
  const done = parsed.pop();
  assert.equal(done?.type, 'speech.audio.done');
  assert.ok(parsed.every(({ type }) => type === 'speech.audio.delta'));
  return { audio: Buffer.concat(parsed.map(({ audio }) => Buffer.from(audio ?? '', 'base64'))), done };
}

describe('POST /v1/audio/speech', () => {
  let gateway: TestGateway;
  let client: OpenAI;
  before(async () => {
    gateway = await TestGateway.start();
    client = gateway.client();
  });
  after(() => gateway.stop());

  /** What the sandbox itself says to a request: it is deterministic. */
  async function vendorAudio(request: Request): Promise<Buffer> {
    const response = await fetch(`${gateway.sandbox.url}/v1/audio/speech`, {
      method: 'POST',
      body: JSON.stringify(request),
      headers: { 'content-type': 'application/json' },
    });
    assert.equal(response.status, 200);
    return Buffer.from(await response.arrayBuffer());
  }

  function post(body: object, headers: Record<string, string> = {}): Promise<Response> {
    return gateway.fetch('/v1/audio/speech', { method: 'POST', body: JSON.stringify(body), headers });
  }

  async function events(id: string): Promise<WireEvent[]> {
    return sseEvents(await (await gateway.fetch(`/v1/jobs/${id}/events`)).text());
  }

  /** The file behind a result's link. */
  async function stored(url: string): Promise<Buffer> {
    const { pathname, searchParams } = new URL(url);
    assert.match(pathname, /^\/results\/\d{10}\/[0-9a-f-]{36}\.[a-z0-9]+$/);
    assert.ok(searchParams.has('expires') && searchParams.has('signature'));
    return await readFile(join(gateway.dataDir, 'blobs', pathname.slice('/results/'.length)));
  }

  for (const [format, type] of Object.entries(types)) {
    it(`POST /v1/audio/speech returns ${format} as the bytes of the vendor, with its content type`, async () => {
      const request = speech({ response_format: format });
      const response = await client.audio.speech.create(request);
      assert.equal(response.headers.get('content-type'), type);
      assert.match(response.headers.get('x-request-id') ?? '', /^job_[0-9a-f]{32}$/);
      assert.match(response.headers.get('openai-processing-ms') ?? '', /^\d+$/);
      const audio = Buffer.from(await response.arrayBuffer());
      assert.ok(audio.equals(await vendorAudio(request)));
    });
  }

  it('POST /v1/audio/speech returns a decodable mp3 by default', async () => {
    const response = await client.audio.speech.create(speech());
    assert.equal(response.headers.get('content-type'), 'audio/mpeg');
    const decoder = new MPEGDecoder();
    await decoder.ready;
    try {
      const { channelData, sampleRate, errors } = decoder.decode(new Uint8Array(await response.arrayBuffer()));
      assert.deepEqual(errors, []);
      const samples = channelData[0] as Float32Array;
      assert.ok(samples.length / sampleRate > 1, 'more than a second');
      assert.ok(
        samples.some((sample) => Math.abs(sample) > 0.05),
        'not silent',
      );
    } finally {
      decoder.free();
    }
  });

  it('POST /v1/audio/speech passes on every parameter: a custom voice, instructions, speed and unknown fields', async () => {
    const request = speech({ voice: { id: 'voice_1' }, instructions: 'Cheerful.', speed: 2, user: 'all' });
    // A voice of one's own lies in the operator's account at the vendor.
    const allowed = gateway.client({ apiKey: await makeApiKey(gateway, { vendorIds: ['voice_*'] }) });
    const audio = Buffer.from(await (await allowed.audio.speech.create(request)).arrayBuffer());
    assert.ok(audio.equals(await vendorAudio(request)));
    // The second is large enough to be parsed in the thread for such bodies.
    for (const value of [1, 'x'.repeat(300_000)]) {
      const unknown = await post(speech({ something_new: value }));
      assert.equal(unknown.status, 400);
      const { error } = (await unknown.json()) as { error: { param: string } };
      assert.equal(error.param, 'something_new', 'the vendor has seen it');
    }
  });

  it('POST /v1/audio/speech sends the first bytes before the vendor has finished', async () => {
    const slow = speech({ response_format: 'wav', sandbox: { tokens_per_second: 2 }, user: 'early' });
    const response = await client.audio.speech.create(slow);
    for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) {
      assert.equal(Buffer.from(chunk.subarray(0, 4)).toString(), 'RIFF');
      assert.equal((await vendorCalls(gateway, 'early'))[0]?.ended, null);
      break;
    }
  });

  it('POST /v1/audio/speech with stream_format sse sends the same audio as events, and the usage in the last one', async () => {
    const response = await post(speech({ stream_format: 'sse', response_format: 'wav' }));
    assert.equal(response.headers.get('content-type'), 'text/event-stream; charset=utf-8');
    const { audio, done } = read(sseEvents(await response.text()));
    assert.ok(audio.equals(await vendorAudio(speech({ response_format: 'wav' }))));
    assert.ok((done.usage?.total_tokens ?? 0) > 0);
    assert.deepEqual(Object.keys(done).sort(), ['type', 'usage']);
  });

  it('POST /v1/audio/speech makes a job with the same audio as events, and with usage, but no stored result', async () => {
    const response = await client.audio.speech.create(speech());
    const audio = Buffer.from(await response.arrayBuffer());
    const id = response.headers.get('x-request-id') as string;
    const said = read(await events(id));
    assert.ok(said.audio.equals(audio));
    const job = await endedJob(gateway, id);
    assert.equal(job.status, 'completed');
    assert.deepEqual(job.usage, { ...said.done.usage, characters: speech().input.length });
    assert.equal(job.result, null, 'a plain answer is not stored');
  });

  it('POST /v1/audio/speech with respond-async stores the audio, and its result links to it', async () => {
    const accepted = await post(speech({ response_format: 'flac' }), { prefer: 'respond-async' });
    assert.equal(accepted.status, 202);
    const { id } = (await accepted.json()) as JobObject;
    const job = await endedJob(gateway, id);
    assert.equal(job.status, 'completed');
    const result = job.result as { url: string; content_type: string; bytes: number };
    const audio = await vendorAudio(speech({ response_format: 'flac' }));
    assert.deepEqual({ ...result, url: '' }, { url: '', content_type: 'audio/flac', bytes: audio.length });
    assert.ok((await stored(result.url)).equals(audio));
    const said = read(await events(id));
    assert.equal(said.audio.length, 0);
    assert.equal(said.done.url, result.url);
    assert.deepEqual(job.usage, { ...said.done.usage, characters: speech().input.length });
  });

  it('POST /v1/audio/speech with respond-async and stream_format sse keeps the events and stores the audio', async () => {
    const accepted = await post(speech({ stream_format: 'sse' }), { prefer: 'respond-async' });
    assert.equal(accepted.status, 202);
    const { id } = (await accepted.json()) as JobObject;
    const said = read(await events(id));
    const audio = await vendorAudio(speech());
    assert.ok(said.audio.equals(audio));
    assert.ok((await stored(said.done.url ?? '')).equals(audio));
  });

  it('POST /v1/audio/speech with wait=N returns the audio if it is ready in time, and the job otherwise', async () => {
    const request = speech({ response_format: 'wav' });
    const response = await post(request, { prefer: 'wait=30' });
    assert.equal(response.status, 200);
    assert.equal(response.headers.get('content-type'), 'audio/wav');
    const audio = Buffer.from(await response.arrayBuffer());
    assert.equal(response.headers.get('content-length'), String(audio.length));
    assert.ok(audio.equals(await vendorAudio(request)));
    const slow = await post({ ...request, sandbox: { first_token_ms: 1500 } }, { prefer: 'wait=1' });
    assert.equal(slow.status, 202);
    const job = await endedJob(gateway, ((await slow.json()) as JobObject).id);
    assert.ok((await stored((job.result as { url: string }).url)).equals(audio));
  });

  it('POST /v1/audio/speech repeats the bytes for an idempotency key, during and after one vendor call', async () => {
    const request = speech({ response_format: 'wav', sandbox: { tokens_per_second: 40 }, user: 'keyed' });
    const keyed = async (): Promise<[string | null, Buffer]> => {
      const response = await post(request, { 'idempotency-key': 'speech' });
      assert.equal(response.status, 200);
      return [response.headers.get('idempotent-replayed'), Buffer.from(await response.arrayBuffer())];
    };
    const first = keyed();
    await eventually(async () => assert.equal((await vendorCalls(gateway, 'keyed')).length, 1));
    const [[, audio], [, beside]] = await Promise.all([first, keyed()]);
    const [isReplayed, later] = await keyed();
    assert.equal(isReplayed, 'true');
    assert.ok(audio.equals(await vendorAudio(request)));
    assert.ok(beside.equals(audio) && later.equals(audio));
    assert.equal((await vendorCalls(gateway, 'keyed')).filter(({ stream }) => stream).length, 1);
  });

  it('POST /v1/audio/speech replays the stored audio of an asynchronous job for its idempotency key', async () => {
    const headers = { 'idempotency-key': 'stored' };
    const accepted = await post(speech(), { ...headers, prefer: 'respond-async' });
    await endedJob(gateway, ((await accepted.json()) as JobObject).id);
    const response = await post(speech(), headers);
    assert.equal(response.headers.get('idempotent-replayed'), 'true');
    assert.equal(response.headers.get('content-type'), 'audio/mpeg');
    const audio = Buffer.from(await response.arrayBuffer());
    assert.equal(response.headers.get('content-length'), String(audio.length));
    assert.ok(audio.equals(await vendorAudio(speech())));
  });

  for (const streamFormat of ['audio', 'sse']) {
    it(`POST /v1/audio/speech replays a keyed answer with stream_format ${streamFormat} after Redis has lost it`, async () => {
      const request = speech({ stream_format: streamFormat, user: `gone-${streamFormat}` });
      const headers = { 'idempotency-key': `gone-${streamFormat}` };
      const first = await post(request, headers);
      const said = (response: Response): Promise<Buffer> =>
        streamFormat === 'sse'
          ? response.text().then((body) => read(sseEvents(body)).audio)
          : response.arrayBuffer().then((bytes) => Buffer.from(bytes));
      const audio = await said(first);
      await forgetInRedis(first.headers.get('x-request-id') as string);
      const again = await post(request, headers);
      assert.equal(again.headers.get('idempotent-replayed'), 'true');
      assert.ok((await said(again)).equals(audio));
      assert.equal((await vendorCalls(gateway, `gone-${streamFormat}`)).length, 1);
    });
  }

  /** Removes a job's state and log once the database has them, which then lets them go by themselves. */
  async function forgetInRedis(wireId: string): Promise<void> {
    const id = wireId.replace('job_', '');
    const redis = new Redis(gateway.redisUrl);
    try {
      await eventually(async () => {
        const lifetime = await redis.pttl(jobKeys.log(id));
        assert.ok(lifetime < 3_600_000, 'the database does not have the answer yet');
      });
      await redis.del(jobKeys.log(id), jobKeys.state(id));
    } finally {
      redis.disconnect();
    }
  }

  it('POST /v1/audio/speech leaves nothing in Redis', async () => {
    assert.deepEqual(await leftovers(gateway.redisUrl), []);
  });
});
