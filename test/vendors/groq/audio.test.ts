import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { findVendorRow } from '../../../shared/vendors/vendors.ts';
import { createVendor } from '../../../workers/vendors/registry.ts';
import type { Offering, Vendor } from '../../../workers/vendors/vendor.ts';
import { apiKey, audio, audioOf, speech, transcription } from '../contracts/audio-vendor-contract.ts';
import { collect, type FixtureVendor, sendJson, startFixtureVendor } from '../contracts/fixture-vendor.ts';

// As documented on 2026-11-21: https://console.groq.com/docs/speech-to-text ("Understanding Metadata Fields", and the answers
// of the API reference, createTranscription and createTranslation), https://console.groq.com/docs/text-to-speech.
const segment = {
  ...{ id: 0, seek: 0, start: 0, end: 2.4, text: ' Good day.', tokens: [50365, 2205, 786, 13, 50485] },
  ...{ temperature: 0, avg_logprob: -0.097569615, compression_ratio: 1.6637554, no_speech_prob: 0.012814695 },
};
const verbose = {
  ...{ task: 'transcribe', language: 'English', duration: 2.4, text: ' Good day.', segments: [segment] },
  x_groq: { id: 'req_01jmy1rq4fe0x9w6mzcx3jqk4c' },
};
const plain = { text: ' Good day.', x_groq: { id: 'req_01jmy1rq4fe0x9w6mzcx3jqk4c' } };

describe('audio of Groq through its row', () => {
  let server: FixtureVendor;
  let vendor: Offering<'transcribe' | 'speak'>;
  const has = (made: Vendor): made is Offering<'transcribe' | 'speak'> => 'transcribe' in made && 'speak' in made;
  before(async () => {
    server = await startFixtureVendor();
    const row = findVendorRow('groq') ?? assert.fail();
    const baseUrl = server.baseUrl.replace('/v1', '/openai/v1');
    const made = createVendor('groq', { row, baseUrl, apiKeys: [apiKey], isOpen: false }, apiKey);
    assert.ok(has(made));
    vendor = made;
  });
  after(async () => {
    await vendor.close();
    await server.close();
  });
  const form = async (): Promise<(readonly [name: string, value: string])[]> => {
    const { headers, body } = server.requests.at(-1) ?? assert.fail();
    const sent = await new Response(body, { headers: { 'content-type': String(headers['content-type']) } }).formData();
    const textOf = async (value: unknown) => (typeof value === 'string' ? value : await (value as File).text());
    return await Promise.all([...sent].map(async ([name, value]) => [name, await textOf(value)] as const));
  };

  it('Groq transcribes and translates', async () => {
    for (const [task, path] of [
      ['transcribe', '/openai/v1/audio/transcriptions'],
      ['translate', '/openai/v1/audio/translations'],
    ] as const) {
      server.answer((response) => sendJson(response, 200, JSON.stringify(plain)));
      const { body } = await vendor.transcribe(transcription('whisper-large-v3', { task }), collect());
      assert.equal(JSON.parse(body).text, ' Good day.');
      const { url, headers } = server.requests.at(-1) ?? assert.fail();
      assert.deepEqual([url, headers.authorization], [path, `Bearer ${apiKey}`]);
      assert.deepEqual(await form(), [
        ['model', 'whisper-large-v3'],
        ['response_format', 'json'],
        ['file', audio],
      ]);
    }
  });

  it('Groq times segments and words for the formats that need them', async () => {
    server.answer((response) => sendJson(response, 200, JSON.stringify(verbose)));
    const options = { language: 'en', timestamp_granularities: ['word', 'segment'] };
    for (const format of ['verbose_json', 'srt'] as const) {
      const { body } = await vendor.transcribe(transcription('whisper-large-v3-turbo', { format, options }), collect());
      assert.deepEqual(JSON.parse(body), verbose);
      assert.deepEqual(await form(), [
        ['model', 'whisper-large-v3-turbo'],
        ['response_format', 'verbose_json'],
        ['language', 'en'],
        ['timestamp_granularities[]', 'word'],
        ['timestamp_granularities[]', 'segment'],
        ['file', audio],
      ]);
    }
  });

  it('Groq speaks with the voices of Orpheus', async () => {
    const content = Buffer.from('RIFF$...WAVEfmt ');
    server.answer((response) => response.writeHead(200, { 'content-type': 'audio/wav' }).end(content));
    const sink = collect();
    const fields = { input: 'Hello [cheerful]', voice: 'hannah', response_format: 'wav' };
    const end = await vendor.speak(speech('canopylabs/orpheus-v1-english', fields), sink);
    assert.deepEqual(end, { body: '{"usage":null}', usage: null });
    assert.ok(audioOf(sink.frames).equals(content));
    const { url, body } = server.requests.at(-1) ?? assert.fail();
    assert.equal(url, '/openai/v1/audio/speech');
    assert.deepEqual(JSON.parse(body), { ...fields, model: 'canopylabs/orpheus-v1-english' });
  });

  it('Groq speech passes on the error of a model whose terms are not accepted', async () => {
    const message = 'The model requires terms acceptance.';
    const error = { message, type: 'invalid_request_error', code: 'model_terms_required' };
    server.answer((response) => sendJson(response, 400, JSON.stringify({ error })));
    await assert.rejects(vendor.speak(speech('canopylabs/orpheus-v1-english'), collect()), {
      ...{ code: 'invalid_request_error', message, vendorCode: 'model_terms_required' },
    });
  });
});
