import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it } from 'node:test';
import { AssemblyAI } from 'assemblyai';
import { createAssemblyAi } from '../../../workers/vendors/assemblyai/assemblyai.ts';
import type { Offering } from '../../../workers/vendors/vendor.ts';
import { apiKey, audio, describeAudioVendor, ofWhisper, transcription } from '../contracts/audio-vendor-contract.ts';
import { collect, type FixtureVendor, sendJson, startFixtureVendor } from '../contracts/fixture-vendor.ts';

// As documented on 2026-11-21: https://www.assemblyai.com/docs/api-reference/transcripts/submit, …/get, …/get-sentences,
// https://www.assemblyai.com/docs/api-reference/files/upload and the types of assemblyai 4.41.5.
const id = '93b8082d-22c2-4dd0-adf6-0037d2c7027a';
const uploadUrl = 'https://cdn.assemblyai.com/upload/f756988d-47e2-4ca3-96ce-04bb168f8f2a';
const word = (text: string, start: number, end: number, speaker: string | null) => ({
  ...{ text, start, end, confidence: 0.97, speaker },
});
const words = [word('Good', 80, 320, 'A'), word('day.', 320, 640, 'A'), word('Hi!', 1700, 2000, 'B')];
const utterances = [
  { text: 'Good day.', start: 80, end: 640, confidence: 0.97, speaker: 'B', words: words.slice(0, 2) },
  { text: 'Hi!', start: 1700, end: 2000, confidence: 0.97, speaker: 'A', words: words.slice(2) },
];
const sentences = utterances.map((utterance) => ({ ...utterance, speaker: null }));
const transcript = {
  id,
  language_model: 'assemblyai_default',
  acoustic_model: 'assemblyai_default',
  language_code: 'en_us',
  language_confidence: 0.9998,
  status: 'completed',
  audio_url: uploadUrl,
  text: 'Good day. Hi!',
  words,
  utterances,
  confidence: 0.97,
  audio_duration: 3,
  speech_models: ['universal-3-5-pro'],
  speech_model_used: 'universal-3-5-pro',
  webhook_url: null,
  webhook_auth: false,
  redact_pii: false,
  summarization: false,
};
const queued = { ...transcript, status: 'queued', text: null, words: null, utterances: null, audio_duration: null };

describeAudioVendor('AssemblyAI', {
  create: (baseUrl) => createAssemblyAi({ name: 'assemblyai', baseUrl, apiKey }),
  listener: 'universal-3-5-pro',
  error: (message) => ({ error: message }),
});

describe('transcripts of AssemblyAI', () => {
  let server: FixtureVendor;
  let vendor: Offering<'transcribe'>;
  before(async () => {
    server = await startFixtureVendor();
    vendor = createAssemblyAi({ name: 'assemblyai', baseUrl: server.baseUrl.replace('/v1', '/v2'), apiKey });
  });
  after(async () => {
    await vendor.close();
    await server.close();
  });

  /** The answers of one transcript: what its polls say, one after the other, the last again and again. */
  const answer = (...polls: (object | number | string)[]): void => {
    const left = polls.length === 0 ? [queued, transcript] : polls;
    server.requests.length = 0;
    server.answer((response, { method, url }) => {
      if (url === '/v2/upload') return sendJson(response, 200, JSON.stringify({ upload_url: uploadUrl }));
      if (url === '/v2/transcript' && method === 'POST') return sendJson(response, 200, JSON.stringify(queued));
      if (url === `/v2/transcript/${id}/sentences`) {
        return sendJson(response, 200, JSON.stringify({ id, confidence: 0.9, audio_duration: 3, sentences }));
      }
      const next = (left.length > 1 ? left.shift() : left[0]) ?? assert.fail();
      if (typeof next === 'number') return sendJson(response, next, JSON.stringify({ error: 'Not now.' }));
      sendJson(response, 200, typeof next === 'string' ? next : JSON.stringify(next));
    });
  };
  beforeEach(() => answer());

  type Request = NonNullable<Parameters<typeof transcription>[1]>;
  const transcribe = async (request: Request = {}, model = 'universal-3-5-pro'): Promise<unknown> => {
    const { body } = await vendor.transcribe(transcription(model, request), collect());
    return JSON.parse(body);
  };
  const asked = (): Record<string, unknown> => {
    const { body } = server.requests.find(({ url, method }) => url === '/v2/transcript' && method === 'POST') ?? {};
    return JSON.parse(body ?? assert.fail());
  };
  const requests = () => server.requests.map(({ method, url }) => `${method} ${url}`);

  it("AssemblyAI transcription uploads the file with its length, with the requests of AssemblyAI's own client", async () => {
    const { origin } = new URL(server.baseUrl);
    const client = new AssemblyAI({ apiKey, baseUrl: origin });
    const theirs = await client.transcripts.transcribe(
      { audio: Buffer.from(audio), speech_models: ['universal-3-5-pro'], language_detection: true },
      { pollingInterval: 10 },
    );
    assert.equal(theirs.text, transcript.text);
    assert.equal((await client.transcripts.sentences(id)).sentences[1]?.text, 'Hi!');
    const seen = () =>
      server.requests.map(({ method, url, headers, body }) => [
        ...[method, url, headers.authorization],
        ...(method === 'POST' ? [headers['content-type'], url === '/v2/upload' ? body : JSON.parse(body)] : []),
      ]);
    const expected = seen();
    answer();
    await transcribe({ format: 'srt' });
    assert.deepEqual(seen(), expected);
    assert.deepEqual(expected[0], ['POST', '/v2/upload', apiKey, 'application/octet-stream', audio]);
    assert.equal(server.requests[0]?.headers['content-length'], String(audio.length));
  });

  it('AssemblyAI transcription fills each format, with times in seconds', async () => {
    const usage = { type: 'duration', seconds: 3 };
    assert.deepEqual(await transcribe(), { text: transcript.text, usage });
    assert.deepEqual(requests(), [
      'POST /v2/upload',
      'POST /v2/transcript',
      `GET /v2/transcript/${id}`,
      `GET /v2/transcript/${id}`,
    ]);
    const timed = [
      { start: 0.08, end: 0.64, text: 'Good day.' },
      { start: 1.7, end: 2, text: 'Hi!' },
    ];
    for (const format of ['srt', 'vtt'] as const) {
      answer();
      assert.deepEqual(await transcribe({ format }), {
        ...{ text: transcript.text, usage, duration: 3 },
        segments: timed,
      });
    }
    answer();
    const options = { timestamp_granularities: ['word', 'segment'] };
    assert.deepEqual(await transcribe({ format: 'verbose_json', options }), {
      ...{ task: 'transcribe', language: 'en_us', duration: 3, text: transcript.text, usage },
      segments: timed.map((segment, id) => ({ id, ...segment, ...ofWhisper })),
      words: [
        { word: 'Good', start: 0.08, end: 0.32 },
        { word: 'day.', start: 0.32, end: 0.64 },
        { word: 'Hi!', start: 1.7, end: 2 },
      ],
    });
    answer();
    await transcribe({ format: 'verbose_json', options: { timestamp_granularities: ['word'] } });
    assert.ok(!requests().some((request) => request.endsWith('/sentences')));
  });

  it('AssemblyAI transcription names speakers A, B, … in the order of their appearance', async () => {
    const { segments } = (await transcribe({ format: 'diarized_json' })) as { segments: object[] };
    assert.equal(asked().speaker_labels, true);
    assert.ok(!requests().some((request) => request.endsWith('/sentences')));
    assert.deepEqual(segments, [
      { type: 'transcript.text.segment', id: 'seg_0', start: 0.08, end: 0.64, text: 'Good day.', speaker: 'A' },
      { type: 'transcript.text.segment', id: 'seg_1', start: 1.7, end: 2, text: 'Hi!', speaker: 'B' },
    ]);
  });

  it("AssemblyAI transcription translates the caller's fields for the model, and parses vendor fields as JSON", async () => {
    const ask = async (options: Request['options'] & object, model?: string) => {
      answer(transcript);
      await transcribe({ options }, model);
      const { audio_url: url, speech_models: models, ...rest } = asked();
      assert.deepEqual([url, models], [uploadUrl, [model ?? 'universal-3-5-pro']]);
      return rest;
    };
    assert.deepEqual(await ask({}), { language_detection: true });
    assert.deepEqual(await ask({ language: 'de', prompt: 'A talk', temperature: 0.2, chunking_strategy: 'auto' }), {
      ...{ language_code: 'de', prompt: 'A talk', temperature: 0.2 },
    });
    assert.deepEqual(await ask({ languages: ['de', 'en'], keywords: ['Sluice'], prompt: 'A talk' }), {
      language_detection: true,
      language_detection_options: { expected_languages: ['de', 'en'] },
      keyterms_prompt: ['Sluice'],
    });
    assert.deepEqual(await ask({ language: 'pl', prompt: 'A talk', temperature: 0.2 }, 'universal-2'), {
      language_code: 'pl',
    });
    const own = { disfluencies: 'true', speakers_expected: '2', custom_spelling: '[{"from":["a"],"to":"b"}]' };
    assert.deepEqual(await ask({ language: 'en', ...own, domain: 'medical-v1', remove_audio_tags: '[all' }), {
      ...{ language_code: 'en', disfluencies: true, speakers_expected: 2, domain: 'medical-v1' },
      ...{ custom_spelling: [{ from: ['a'], to: 'b' }], remove_audio_tags: '[all' },
    });
    answer();
    for (const name of ['audio_url', 'speech_models', 'webhook_url', 'multichannel', 'summarization']) {
      await assert.rejects(transcribe({ options: { [name]: 'x' } }), { code: 'invalid_request_error', param: name });
    }
    assert.equal(server.requests.length, 0);
  });

  it('AssemblyAI transcription polls on after failed polls, and is created once', async () => {
    answer(queued, 500, '{', 429, { ...queued, status: 'processing' }, transcript);
    assert.deepEqual(await transcribe(), { text: transcript.text, usage: { type: 'duration', seconds: 3 } });
    assert.equal(requests().filter((request) => request.startsWith('POST')).length, 2);
  });

  it('AssemblyAI transcription returns an empty text for a transcript without words', async () => {
    answer({ ...transcript, text: null, words: null, utterances: null });
    assert.deepEqual(await transcribe(), { text: '', usage: { type: 'duration', seconds: 3 } });
  });

  it("AssemblyAI transcription fails with the transcript's error, for the file or for the vendor", async () => {
    for (const [error, code, param] of [
      [
        'Transcoding failed. File does not appear to contain audio. File type is text/plain.',
        'invalid_request_error',
        'file',
      ],
      ['language_detection cannot be performed on files with no spoken audio.', 'invalid_request_error', 'file'],
      ['Server error, developers have been alerted.', 'server_error', null],
    ] as const) {
      answer({ ...queued, status: 'error', error });
      await assert.rejects(transcribe(), { code, param, message: error });
    }
    for (const why of ['Odd', 'Transcoding failed']) {
      answer({ ...queued, status: 'error', error: `${why}: ${apiKey}` });
      await assert.rejects(transcribe(), { message: `${why}: [key]` });
    }
    answer({ ...queued, status: 'error', error: '' });
    await assert.rejects(transcribe(), { code: 'server_error' });
    answer({ ...queued, status: 'lost' });
    await assert.rejects(transcribe(), { code: 'server_error' });
  });

  it('AssemblyAI transcription is not created again when its outcome is unknown', async () => {
    for (const created of ['{', '{}', '{"id":"../x"}', undefined]) {
      answer();
      server.answer((response, { url }) => {
        if (url === '/v2/upload') sendJson(response, 200, JSON.stringify({ upload_url: uploadUrl }));
        else if (created === undefined) response.socket?.resetAndDestroy();
        else sendJson(response, 200, created);
      });
      await assert.rejects(transcribe(), { code: 'outcome_unknown' }, created);
      assert.deepEqual(requests(), ['POST /v2/upload', 'POST /v2/transcript']);
    }
    // A refusal, or a vendor that is busy, has begun nothing.
    for (const [status, code] of [
      [400, 'invalid_request_error'],
      [429, 'rate_limit_exceeded'],
      [529, 'service_unavailable'],
    ] as const) {
      server.answer((response, { url }) => {
        if (url === '/v2/upload') sendJson(response, 200, JSON.stringify({ upload_url: uploadUrl }));
        else sendJson(response, status, '{"error":"No."}');
      });
      await assert.rejects(transcribe(), { code });
    }
    answer(404);
    await assert.rejects(transcribe(), { code: 'outcome_unknown' });
  });

  it('AssemblyAI transcription ends with the abort of its call', async () => {
    const controller = new AbortController();
    answer(queued);
    const call = transcription('universal-3-5-pro', {}, { signal: controller.signal });
    const task = vendor.transcribe(call, collect());
    setTimeout(() => controller.abort(), 50);
    await assert.rejects(task, { code: 'cancelled' });
  });
});
