import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it } from 'node:test';
import { createElevenLabs } from '../../../workers/vendors/elevenlabs/elevenlabs.ts';
import { requestText } from '../../../workers/vendors/request-body.ts';
import type { Offering } from '../../../workers/vendors/vendor.ts';
import {
  apiKey,
  audio,
  audioOf,
  describeAudioVendor,
  ofWhisper,
  sendAudio,
  speech,
  transcription,
} from '../contracts/audio-vendor-contract.ts';
import { collect, type FixtureVendor, sendJson, startFixtureVendor } from '../contracts/fixture-vendor.ts';

// As documented on 2026-11-21: https://elevenlabs.io/docs/api-reference/speech-to-text/convert and …/text-to-speech/stream with
// the types of @elevenlabs/elevenlabs-js 2.73.0, and https://help.elevenlabs.io/hc/en-us/articles/19572237925521 (errors).
const piece = (text: string, type: string, start: number, end: number, speaker: string) => ({
  text,
  start,
  end,
  type,
  speaker_id: speaker,
  logprob: -0.01,
});
const answer = {
  language_code: 'eng',
  language_probability: 0.98,
  text: 'Good day. "Well?" Hi there… you',
  words: [
    piece('Good', 'word', 0.1, 0.3, 'speaker_0'),
    piece(' ', 'spacing', 0.3, 0.32, 'speaker_0'),
    piece('day.', 'word', 0.32, 0.6, 'speaker_0'),
    piece(' ', 'spacing', 0.6, 0.7, 'speaker_0'),
    piece('"Well?"', 'word', 0.7, 0.9, 'speaker_0'),
    piece(' ', 'spacing', 0.9, 1, 'speaker_0'),
    piece('Hi', 'word', 1, 1.2, 'speaker_1'),
    piece(' ', 'spacing', 1.2, 2.5, 'speaker_1'),
    piece('there', 'word', 2.5, 2.8, 'speaker_1'),
    piece(' ', 'spacing', 2.8, 2.9, 'speaker_1'),
    piece('you', 'word', 2.9, 3, 'speaker_0'),
  ],
  transcription_id: 'b4a9c4d2',
  audio_duration_secs: 3.5,
};
const voice = 'JBFqnCBsd6RMkjVDRZzb';

/** The contract's calls name a voice of OpenAI's, which is refused here before the vendor is asked. */
function withOwnVoice(vendor: Offering<'transcribe' | 'speak'>): Offering<'transcribe' | 'speak'> {
  return {
    ...vendor,
    speak: (call, sink) =>
      vendor.speak({ ...call, request: JSON.stringify({ ...JSON.parse(requestText(call.request)), voice }) }, sink),
  };
}

describeAudioVendor('ElevenLabs', {
  create: (baseUrl) => withOwnVoice(createElevenLabs({ name: 'elevenlabs', baseUrl, apiKey })),
  listener: 'scribe_v2',
  speaker: 'eleven_multilingual_v2',
  error: (message) => ({ detail: { status: 'something_wrong', message } }),
});

describe('audio of ElevenLabs', () => {
  let server: FixtureVendor;
  let vendor: Offering<'transcribe' | 'speak'>;
  before(async () => {
    server = await startFixtureVendor();
    vendor = createElevenLabs({ name: 'elevenlabs', baseUrl: server.baseUrl, apiKey });
  });
  after(async () => {
    await vendor.close();
    await server.close();
  });

  describe('transcripts of ElevenLabs', () => {
    beforeEach(() => {
      server.requests.length = 0;
      server.answer((response) => sendJson(response, 200, JSON.stringify(answer)));
    });
    type Request = NonNullable<Parameters<typeof transcription>[1]>;
    const transcribe = async (request: Request = {}): Promise<Record<string, unknown>> => {
      const { body } = await vendor.transcribe(transcription('scribe_v2', request), collect());
      return JSON.parse(body);
    };
    const form = async (): Promise<FormData> => {
      const { headers, body } = server.requests.at(-1) ?? assert.fail();
      return await new Response(body, { headers: { 'content-type': String(headers['content-type']) } }).formData();
    };
    const fields = async () => [...(await form())].filter(([, value]) => typeof value === 'string');

    it('ElevenLabs transcription sends a form with the file and its length, and the key in a header', async () => {
      const usage = { type: 'duration', seconds: 3.5 };
      assert.deepEqual(await transcribe(), { text: answer.text, usage });
      const [{ method, url, headers, body } = assert.fail()] = server.requests;
      assert.deepEqual([method, url], ['POST', '/v1/speech-to-text']);
      assert.equal(headers['xi-api-key'], apiKey);
      assert.equal(headers['content-length'], String(body.length));
      const file = (await form()).get('file') as unknown as File;
      assert.deepEqual([await file.text(), file.name, file.type], [audio, 'say.wav', 'audio/wav']);
      assert.deepEqual(await fields(), [
        ['model_id', 'scribe_v2'],
        ['tag_audio_events', 'false'],
        ['timestamps_granularity', 'none'],
        ['diarize', 'false'],
      ]);
    });

    it("ElevenLabs transcription translates the caller's fields, sends vendor fields unchanged, and omits hints", async () => {
      await transcribe({
        options: {
          language: 'de',
          keywords: ['Sluice', 'BullMQ'],
          temperature: 0.4,
          prompt: 'A talk',
          chunking_strategy: 'auto',
          tag_audio_events: 'true',
          num_speakers: '2',
          enable_logging: 'false',
        },
      });
      assert.equal(server.requests[0]?.url, '/v1/speech-to-text?enable_logging=false');
      assert.deepEqual(await fields(), [
        ['model_id', 'scribe_v2'],
        ['tag_audio_events', 'true'],
        ['timestamps_granularity', 'none'],
        ['diarize', 'false'],
        ['language_code', 'de'],
        ['temperature', '0.4'],
        ['keyterms', 'Sluice'],
        ['keyterms', 'BullMQ'],
        ['num_speakers', '2'],
      ]);
      await transcribe({ options: { languages: ['de', 'en'] } });
      assert.equal((await form()).get('language_code'), null);
      for (const name of ['webhook', 'source_url', 'cloud_storage_url', 'use_multi_channel', 'model_id', 'file']) {
        await assert.rejects(transcribe({ options: { [name]: 'x' } }), { code: 'invalid_request_error', param: name });
      }
      assert.equal(server.requests.length, 2);
    });

    it('ElevenLabs transcription has segments by sentence, speaker and pause', async () => {
      const usage = { type: 'duration', seconds: 3.5 };
      const timed = { task: 'transcribe', language: 'eng', duration: 3.5, text: answer.text, usage };
      const spans = [
        [0.1, 0.6, 'Good day.', 'A'],
        [0.7, 0.9, '"Well?"', 'A'],
        [1, 1.2, 'Hi', 'B'],
        [2.5, 2.8, 'there', 'B'],
        [2.9, 3, 'you', 'A'],
      ] as const;
      const segments = spans.map(([start, end, text], id) => ({ id, start, end, text, ...ofWhisper }));
      assert.deepEqual(await transcribe({ format: 'verbose_json' }), { ...timed, segments });
      assert.equal((await form()).get('timestamps_granularity'), 'word');
      const options = { timestamp_granularities: ['word'] };
      const { words, segments: none } = await transcribe({ format: 'verbose_json', options });
      assert.equal(none, undefined);
      assert.deepEqual((words as object[]).slice(0, 2), [
        { word: 'Good', start: 0.1, end: 0.3 },
        { word: 'day.', start: 0.32, end: 0.6 },
      ]);
      assert.equal((await form()).get('timestamps_granularity'), 'word');
      const diarized = (await transcribe({ format: 'diarized_json' })).segments;
      assert.deepEqual(
        diarized,
        spans.map(([start, end, text, speaker], index) => ({
          type: 'transcript.text.segment',
          id: `seg_${index}`,
          start,
          end,
          text,
          speaker,
        })),
      );
      assert.equal((await form()).get('diarize'), 'true');
      const cues = (await transcribe({ format: 'srt' })).segments as { text: string }[];
      assert.deepEqual(
        cues.map(({ text }) => text),
        spans.map(([, , text]) => text),
      );
    });

    it('ElevenLabs transcription cuts very many words without an end of a sentence, and of very many speakers, at once', async () => {
      const words = (speakerOf: (at: number) => string) => {
        const all = Array.from({ length: 150_000 }, (_, at) => piece('word ', 'word', at / 2, at / 2, speakerOf(at)));
        server.answer((response) => sendJson(response, 200, JSON.stringify({ ...answer, words: all })));
        return transcribe({ format: 'diarized_json' });
      };
      const { user } = process.cpuUsage();
      const [{ segments: alone }, { segments: many }] = [
        await words(() => 'speaker_0'),
        await words((at) => `speaker_${at}`),
      ];
      assert.ok(process.cpuUsage().user - user < 15e6);
      assert.equal((alone as object[]).length, 1);
      const labels = new Set((many as { speaker: string }[]).map(({ speaker }) => speaker));
      assert.equal(labels.size, 150_000);
    });
  });

  describe('speech of ElevenLabs', () => {
    beforeEach(() => {
      server.requests.length = 0;
      server.answer((response) => sendAudio(response, 'abc'));
    });
    const speak = async (fields: object = {}): Promise<string> => {
      const sink = collect();
      await vendor.speak(speech('eleven_flash_v2_5', { voice, ...fields }), sink);
      return audioOf(sink.frames).toString();
    };
    const sent = () => {
      const { url, body } = server.requests.at(-1) ?? assert.fail();
      return [url, JSON.parse(body)];
    };
    const place = `/v1/text-to-speech/${voice}/stream?output_format=`;

    it('ElevenLabs speech posts to the path of its voice, in each format', async () => {
      const body = { text: 'Hello', model_id: 'eleven_flash_v2_5' };
      for (const [format, name] of [
        ['mp3', 'mp3_44100_128'],
        ['opus', 'opus_48000_128'],
        ['pcm', 'pcm_24000'],
      ] as const) {
        assert.equal(await speak({ response_format: format, voice: { id: voice } }), 'abc');
        assert.deepEqual(sent(), [place + name, body]);
      }
      assert.equal(server.requests[0]?.headers['xi-api-key'], apiKey);
    });

    it('ElevenLabs speech sends the speed and vendor fields, in the body or in the query', async () => {
      await speak({
        speed: 1.1,
        voice_settings: { stability: 0.4, speed: 0.9 },
        seed: 7,
        enable_logging: false,
        optimize_streaming_latency: 2,
      });
      assert.deepEqual(sent(), [
        `${place}mp3_44100_128&enable_logging=false&optimize_streaming_latency=2`,
        { seed: 7, text: 'Hello', model_id: 'eleven_flash_v2_5', voice_settings: { stability: 0.4, speed: 1.1 } },
      ]);
    });

    it('ElevenLabs speech rejects unsupported formats, voices and fields by name, without a call', async () => {
      for (const [param, value] of [
        ['response_format', 'aac'],
        ['response_format', 'flac'],
        ['response_format', 'wav'],
        ['voice', 'alloy'],
        ['voice', '../../v1/user'],
        ['voice', '..'],
        ['voice', 'v'.repeat(100_000)],
        ['output_format', 'pcm_8000'],
        ['model_id', 'x'],
        ['text', 'x'],
      ] as const) {
        await assert.rejects(speak({ [param]: value }), { code: 'invalid_request_error', param });
      }
      assert.equal(server.requests.length, 0);
    });
  });

  it('ElevenLabs errors name the party at fault and the field', async () => {
    const failing = (status: number, detail: unknown) => {
      server.answer((response) => sendJson(response, status, JSON.stringify({ detail })));
      return vendor.speak(speech('eleven_v3', { voice }), collect());
    };
    const message = 'No such thing.';
    for (const status of [400, 404]) {
      const unknownVoice = { code: 'invalid_request_error', param: 'voice', vendorCode: 'voice_not_found', message };
      await assert.rejects(failing(status, { status: 'voice_not_found', message }), unknownVoice);
      const unknownModel = { status: 'model_not_found', message };
      await assert.rejects(failing(status, unknownModel), { code: 'model_not_found' });
    }
    const fault = { loc: ['body', 'voice_settings', 'speed'], msg: 'It is too fast.', type: 'less_than_equal' };
    const expected = { code: 'invalid_request_error', param: 'voice_settings.speed', message: fault.msg };
    await assert.rejects(failing(422, [fault]), expected);
    const newer = { type: 'validation_error', code: 'text_too_long', status: 'text_too_long', message, param: 'text' };
    await assert.rejects(failing(400, newer), { vendorCode: 'text_too_long', param: 'text', message });
    const poor = { status: 'quota_exceeded', message: 'You have 3 credits left.' };
    await assert.rejects(failing(401, poor), { code: 'service_unavailable', message: /not available/ });
  });
});
