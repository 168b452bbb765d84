import assert from 'node:assert/strict';
import { after, before, it } from 'node:test';
import { createOpenAI } from '@ai-sdk/openai';
import { experimental_transcribe as transcribe } from 'ai';
import { createDeepgram } from '../../workers/vendors/deepgram/deepgram.ts';
import type { Offering } from '../../workers/vendors/vendor.ts';
import { transcription } from '../vendors/contracts/audio-vendor-contract.ts';
import { collect, type FixtureVendor, sendJson, startFixtureVendor } from '../vendors/contracts/fixture-vendor.ts';

const apiKey = 'key-0123456789abcdef';
const heard = { transcript: 'Good day.', confidence: 0.99, words: [] };
const answer = {
  metadata: { duration: 2.25 },
  results: {
    channels: [{ alternatives: [heard], detected_language: 'en' }],
    utterances: [{ start: 0.08, end: 0.64, confidence: 0.98, transcript: heard.transcript, words: [] }],
  },
};

let server: FixtureVendor;
let vendor: Offering<'transcribe' | 'speak'>;
before(async () => {
  server = await startFixtureVendor();
  vendor = createDeepgram({ name: 'deepgram', baseUrl: server.baseUrl, apiKey });
});
after(async () => {
  await vendor.close();
  await server.close();
});

it('the AI SDK, which checks every field of a segment, takes the transcripts of vendors other than OpenAI', async () => {
  server.answer((response) => sendJson(response, 200, JSON.stringify(answer)));
  const { body } = await vendor.transcribe(transcription('nova-3', { format: 'verbose_json' }), collect());
  const fetch = (): Promise<Response> =>
    Promise.resolve(new Response(String(body), { headers: { 'content-type': 'application/json' } }));
  const { text, segments, durationInSeconds } = await transcribe({
    ...{ model: createOpenAI({ apiKey, fetch }).transcription('nova-3'), maxRetries: 0 },
    audio: Buffer.from('RIFF....WAVEfmt '),
  });
  assert.deepEqual([text, durationInSeconds], ['Good day.', 2.25]);
  assert.deepEqual(segments, [{ text: 'Good day.', startSecond: 0.08, endSecond: 0.64 }]);
});
