import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import fc from 'fast-check';
import OpenAI, { toFile } from 'openai';
import type { JobObject } from '../../../api/pipeline/job-object.ts';
import { endedJob } from '../../support/ended-job.ts';
import { assertErrorAnswer, errorDetails } from '../../support/error-answers.ts';
import { eventually } from '../../support/eventually.ts';
import { TestGateway } from '../../support/gateway.ts';
import { leftovers } from '../../support/leftovers.ts';
import { sseEvents, type WireEvent } from '../../support/sse-events.ts';
import { storedBlobs } from '../../support/stored-blobs.ts';
import { vendorCalls } from '../../support/vendor-journal.ts';
import { wav } from '../../support/wav.ts';

type Fields = Record<string, string | readonly string[]>;

function formOf(fields: Fields, audio: Buffer | undefined = wav(2)): FormData {
  const form = new FormData();
  for (const [name, value] of Object.entries({ model: 'sandbox-transcribe', ...fields })) {
    for (const each of [value].flat()) form.append(name, each);
  }
  if (audio !== undefined) form.append('file', new Blob([new Uint8Array(audio)], { type: 'audio/wav' }), 'a.wav');
  return form;
}

interface TranscriptEvent {
  readonly type: string;
  readonly delta?: string;
  readonly text?: string;
  readonly logprobs?: unknown[];
  readonly usage?: { total_tokens: number };
}

function read(events: readonly WireEvent[]): { deltas: TranscriptEvent[]; done: TranscriptEvent } {
  const parsed = events.map(({ data }) => JSON.parse(data) as TranscriptEvent);
  const done = parsed.pop();
  assert.equal(done?.type, 'transcript.text.done');
  assert.ok(parsed.every(({ type }) => type === 'transcript.text.delta'));
  return { deltas: parsed, done };
}

const joined = (deltas: readonly TranscriptEvent[]): string => deltas.map(({ delta }) => delta).join('');
const paths = ['/v1/audio/transcriptions', '/v1/audio/translations'];

describe('POST /v1/audio/transcriptions and /v1/audio/translations', () => {
  let gateway: TestGateway;
  let client: OpenAI;
  before(async () => {
    gateway = await TestGateway.start();
    client = gateway.client();
  });
  after(() => gateway.stop());

  const audio = () => toFile(wav(2), 'speech.wav', { type: 'audio/wav' });
  const model = 'sandbox-transcribe';

  function post(path: string, form: FormData, headers: Record<string, string> = {}, signal?: AbortSignal) {
    const init = { method: 'POST', body: form, headers: { authorization: `Bearer ${gateway.apiKey}`, ...headers } };
    return fetch(`${gateway.url}${path}`, { ...init, signal: signal ?? null });
  }

  async function vendorText(path: string, fields: Fields): Promise<string> {
    const response = await fetch(`${gateway.sandbox.url}${path}`, { method: 'POST', body: formOf(fields) });
    assert.equal(response.status, 200);
    return await response.text();
  }

  async function events(id: string): Promise<WireEvent[]> {
    return sseEvents(await (await gateway.fetch(`/v1/jobs/${id}/events`)).text());
  }

  /** Nothing is left of any upload or request. */
  async function assertNoBlobs(): Promise<void> {
    await eventually(async () => assert.deepEqual(await storedBlobs(gateway.dataDir), []));
  }

  it('POST /v1/audio/transcriptions returns json with text and usage by default, and log probabilities on request', async () => {
    for (const more of [{}, { response_format: 'json' as const }]) {
      const { data, response } = await client.audio.transcriptions
        .create({ model, file: await audio(), ...more })
        .withResponse();
      assert.match(data.text, /^Audio of 2\.00 seconds, WAV/);
      assert.deepEqual(data.usage, { type: 'duration', seconds: 2 });
      assert.deepEqual(Object.keys(data).sort(), ['text', 'usage']);
      assert.equal(response.headers.get('content-type'), 'application/json; charset=utf-8');
      assert.match(response.headers.get('x-request-id') ?? '', /^job_[0-9a-f]{32}$/);
    }
    const file = await audio();
    const { logprobs, text } = await client.audio.transcriptions.create({ model, file, include: ['logprobs'] });
    assert.equal(logprobs?.map(({ token }) => token).join(''), text);
  });

  const contentTypes = { text: 'text/plain', srt: 'application/x-subrip', vtt: 'text/vtt' } as const;
  for (const [format, type] of Object.entries(contentTypes)) {
    it(`POST /v1/audio/transcriptions and translations build the same ${format} as the vendor would`, async () => {
      const { data, response } = await client.audio.transcriptions
        .create({ model, file: await audio(), response_format: format as 'srt' })
        .withResponse();
      assert.equal(response.headers.get('content-type'), `${type}; charset=utf-8`);
      assert.equal(data, await vendorText('/v1/audio/transcriptions', { response_format: format }));
      const translation = await client.audio.translations.create({
        model,
        file: await audio(),
        response_format: format as 'srt',
      });
      assert.equal(translation, await vendorText('/v1/audio/translations', { response_format: format }));
    });
  }

  it('POST /v1/audio/transcriptions returns verbose_json with segments, words or both, as requested', async () => {
    const verbose = async (granularities?: ('word' | 'segment')[]) =>
      await client.audio.transcriptions.create({
        model,
        file: await audio(),
        response_format: 'verbose_json',
        ...(granularities && { timestamp_granularities: granularities }),
      });
    const plain = await verbose();
    assert.equal(plain.duration, 2);
    assert.equal(plain.language, 'english');
    assert.equal(plain.segments?.at(-1)?.end, 2);
    assert.equal(plain.words, undefined);
    const words = await verbose(['word']);
    assert.ok((words.words?.length ?? 0) > 3);
    assert.equal(words.segments, undefined);
    const both = await verbose(['word', 'segment']);
    assert.deepEqual([both.words, both.segments], [words.words, plain.segments]);
  });

  it('POST /v1/audio/translations translates, in json and verbose_json', async () => {
    const { text } = await client.audio.translations.create({ model, file: await audio(), prompt: 'Ann' });
    assert.match(text, /translated this into English\. The hint was: Ann$/);
    const request = { model, file: await audio(), prompt: 'Ann', temperature: 0.5 };
    // The client's types take every translation for the plain kind.
    const verbose = (await client.audio.translations.create({
      ...request,
      response_format: 'verbose_json',
    })) as unknown as OpenAI.Audio.TranslationVerbose;
    assert.equal(verbose.text, text);
    assert.equal(verbose.segments?.[0]?.temperature, 0.5);
  });

  it('POST /v1/audio/transcriptions passes every other parameter to the vendor, including unknown ones', async () => {
    const { text } = await client.audio.transcriptions.create({
      model,
      file: await audio(),
      language: 'de',
      prompt: 'Names: Zoë "and" Bob\n',
      temperature: 0,
      chunking_strategy: { type: 'server_vad', threshold: 0.5 },
    });
    assert.match(text, /said to be de\. The hint was: Names: Zoë "and" Bob$/);
    for (const [name, value] of Object.entries({
      'chunking_strategy[threshold]': '2',
      something_new: '1',
      language: 'xyzq',
    })) {
      const response = await post('/v1/audio/transcriptions', formOf({ [name]: value }));
      const error = await assertErrorAnswer(response, 400, errorCode(await response.clone().json()));
      assert.equal(error.param, name, 'the vendor has seen it');
    }
  });

  it('POST /v1/audio/transcriptions streams deltas, then the whole text with the usage', async () => {
    const file = await audio();
    const held = await client.audio.transcriptions.create({ model, file });
    const seen: TranscriptEvent[] = [];
    for await (const event of await client.audio.transcriptions.create({ model, file: await audio(), stream: true })) {
      seen.push(event as TranscriptEvent);
    }
    const done = seen.pop();
    assert.equal(joined(seen), held.text);
    assert.equal(done?.type, 'transcript.text.done');
    assert.equal(done?.text, held.text);
    assert.ok((done?.usage?.total_tokens ?? 0) > 0);
  });

  it('POST /v1/audio/transcriptions streams SSE with an id per event, and log probabilities on request', async () => {
    const form = formOf({ stream: 'true', 'include[]': 'logprobs', user: 'framed' });
    const response = await post('/v1/audio/transcriptions', form);
    assert.equal(response.headers.get('content-type'), 'text/event-stream; charset=utf-8');
    const wire = sseEvents(await response.text());
    assert.ok(wire.every(({ id }) => /^\d+\.0$/.test(id ?? '')));
    const { deltas, done } = read(wire);
    assert.deepEqual(
      done.logprobs,
      deltas.flatMap(({ logprobs }) => logprobs ?? []),
    );
    assert.deepEqual(await events(response.headers.get('x-request-id') as string), wire);
  });

  it('POST /v1/audio/transcriptions streams exactly the text of the held answer', async () => {
    const prompt = fc.string({ unit: 'grapheme', maxLength: 80 });
    await fc.assert(
      fc.asyncProperty(prompt, fc.integer({ min: 1, max: 40 }), async (hint, tenths) => {
        const ask = (more: Fields) =>
          post('/v1/audio/transcriptions', formOf({ prompt: hint, ...more }, wav(tenths / 10)));
        const { text } = (await (await ask({})).json()) as { text: string };
        const { deltas, done } = read(sseEvents(await (await ask({ stream: 'true' })).text()));
        assert.equal(joined(deltas), text);
        assert.equal(done.text, text);
        assert.equal(await (await ask({ response_format: 'text' })).text(), `${text}\n`);
      }),
      { numRuns: 15 },
    );
  });

  it('POST /v1/audio/transcriptions with respond-async has the body as the result of its job, a string unless it is JSON', async () => {
    for (const format of ['json', 'text', 'srt', 'vtt', 'verbose_json']) {
      const form = formOf({ response_format: format });
      const accepted = await post('/v1/audio/transcriptions', form, { prefer: 'respond-async' });
      assert.equal(accepted.status, 202);
      const { id } = (await accepted.json()) as JobObject;
      const job = await endedJob(gateway, id);
      assert.equal(job.status, 'completed');
      const whole = await vendorText('/v1/audio/transcriptions', { response_format: format });
      assert.deepEqual(job.result, format.endsWith('json') ? JSON.parse(whole) : whole);
      assert.deepEqual(job.usage, { type: 'duration', seconds: 2 });
      const { deltas, done } = read(await events(id));
      assert.deepEqual(deltas, []);
      assert.match(done.text ?? '', /^Audio of 2\.00 seconds/);
    }
  });

  it('POST /v1/audio/transcriptions with respond-async and stream keeps the events, and the whole text as the result', async () => {
    const form = formOf({ stream: 'true' });
    const accepted = await post('/v1/audio/transcriptions', form, { prefer: 'respond-async' });
    const { id } = (await accepted.json()) as JobObject;
    const { deltas, done } = read(await events(id));
    assert.equal(joined(deltas), done.text);
    assert.equal(((await endedJob(gateway, id)).result as { text: string }).text, done.text);
  });

  it('POST /v1/audio/transcriptions with wait=N returns the body if it is ready in time, and the job otherwise', async () => {
    const fields = { response_format: 'srt' };
    const response = await post('/v1/audio/transcriptions', formOf(fields), { prefer: 'wait=30' });
    assert.equal(response.headers.get('content-type'), 'application/x-subrip; charset=utf-8');
    assert.equal(await response.text(), await vendorText('/v1/audio/transcriptions', fields));
    const slow = formOf({ sandbox: '{"first_token_ms":1500}' });
    const late = await post('/v1/audio/transcriptions', slow, { prefer: 'wait=1' });
    assert.equal(late.status, 202);
    assert.equal((await endedJob(gateway, ((await late.json()) as JobObject).id)).status, 'completed');
  });

  it('POST /v1/audio/transcriptions replays the answer of one vendor call for an idempotency key, whatever the boundary', async () => {
    for (const [name, fields] of Object.entries({ srt: { response_format: 'srt' }, stream: { stream: 'true' } })) {
      const answers = [];
      for (let round = 0; round < 2; round++) {
        const form = formOf({ ...fields, user: `keyed-${name}` });
        const response = await post('/v1/audio/transcriptions', form, { 'idempotency-key': name });
        assert.equal(response.headers.get('idempotent-replayed'), round === 0 ? null : 'true');
        answers.push(await response.text());
      }
      assert.equal(answers[0], answers[1]);
      assert.equal((await vendorCalls(gateway, `keyed-${name}`)).length, 1);
      const other = formOf({ ...fields, user: `keyed-${name}` }, wav(3));
      const refused = await post('/v1/audio/transcriptions', other, { 'idempotency-key': name });
      await assertErrorAnswer(refused, 422, 'idempotency_key_reused');
    }
  });

  it('POST /v1/audio/transcriptions ends a stream that its vendor breaks with an error event', async () => {
    const form = formOf({ stream: 'true', sandbox: '{"fault":{"kind":"reset","after_tokens":3}}' });
    const response = await post('/v1/audio/transcriptions', form);
    assert.equal(response.status, 200);
    const wire = sseEvents(await response.text());
    assert.equal(errorDetails(JSON.parse(wire.pop()?.data ?? '')).code, 'stream_interrupted');
    assert.equal(wire.length, 3);
    const stream = await client.audio.transcriptions.create({
      model,
      file: await audio(),
      stream: true,
      ...{ sandbox: '{"fault":{"kind":"reset","after_tokens":3}}' },
    });
    await assert.rejects(
      async () => {
        for await (const _ of stream);
      },
      (error) => error instanceof OpenAI.APIError && error.code === 'stream_interrupted',
    );
  });

  it('POST /v1/audio/transcriptions returns the 400 of a vendor with its parameter', async () => {
    const form = formOf({}, Buffer.from('no audio at all'));
    const response = await post('/v1/audio/transcriptions', form);
    const error = await assertErrorAnswer(response, 400, errorCode(await response.clone().json()));
    assert.equal(error.param, 'file');
  });

  it('POST /v1/audio/transcriptions accepts a file of 25 MiB, and returns 413 for one byte more', async () => {
    const limit = 25 * 1024 * 1024;
    const whole = wav(2);
    const padded = Buffer.concat([whole, Buffer.alloc(limit - whole.length)]);
    const taken = await post('/v1/audio/transcriptions', formOf({}, padded));
    assert.equal(taken.status, 200, await taken.text());
    for (const path of paths) {
      const refused = await post(path, formOf({}, Buffer.concat([padded, Buffer.from([0])])));
      const error = await assertErrorAnswer(refused, 413, 'request_too_large');
      assert.equal(error.param, 'file');
    }
  });

  it('POST /v1/audio/transcriptions keeps no upload after success, failure, refusal or a disconnected client', async () => {
    // What a keyed job was asked stays no longer than it runs either.
    await assertNoBlobs();
    const refusals: [FormData, number][] = [
      [formOf({ temperature: '2' }), 400],
      [formOf({ model: 'nobody' }), 404],
      [formOf({ model: 'sandbox-chat' }), 400],
      [formOf({ response_format: 'diarized_json' }), 400],
      [formOf({ sandbox: '{"fault":{"kind":"error","status":500}}' }), 500],
      [formOf({ something_new: '1' }), 400],
    ];
    for (const [form, status] of refusals) {
      assert.equal((await post('/v1/audio/transcriptions', form)).status, status);
      await assertNoBlobs();
    }
    const controller = new AbortController();
    const form = formOf({ user: 'leaves', sandbox: '{"first_token_ms":60000}' });
    const left = post('/v1/audio/transcriptions', form, {}, controller.signal);
    await eventually(async () => assert.equal((await vendorCalls(gateway, 'leaves')).length, 1));
    controller.abort();
    await assert.rejects(left);
    await eventually(async () => assert.equal((await vendorCalls(gateway, 'leaves'))[0]?.ended, 'client_closed'));
    await assertNoBlobs();
    assert.deepEqual(await leftovers(gateway.redisUrl), []);
  });
});

function errorCode(body: unknown): string {
  return (body as { error: { code: string } }).error.code;
}
