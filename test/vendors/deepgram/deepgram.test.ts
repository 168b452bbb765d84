import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it } from 'node:test';
import { createDeepgram } from '../../../workers/vendors/deepgram/deepgram.ts';
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

// As documented on 2026-11-21: https://developers.deepgram.com/reference/speech-to-text/listen-pre-recorded and the types of
// @deepgram/sdk 5.13.0 (transcripts), https://developers.deepgram.com/docs/utterances, …/docs/diarization (who speaks),
// https://developers.deepgram.com/docs/tts-media-output-settings (formats), https://developers.deepgram.com/docs/errors.
const word = (word: string, punctuated: string, start: number, end: number, speaker: number) => ({
  word,
  start,
  end,
  confidence: 0.99,
  punctuated_word: punctuated,
  speaker,
  speaker_confidence: 0.8,
});
const words = [word('good', 'Good', 0.08, 0.32, 0), word('day', 'day.', 0.32, 0.64, 0), word('hi', 'Hi!', 1.7, 2, 1)];
const utterance = (transcript: string, start: number, end: number, speaker: number) => ({
  start,
  end,
  confidence: 0.98,
  channel: 0,
  transcript,
  words: [],
  speaker,
  id: '2f1a4a0c-4b0a-4c3e-9e2e-5e0b3f0d6a11',
});
const answer = {
  metadata: {
    transaction_key: 'deprecated',
    request_id: 'a847f427-4ad5-4d67-9b95-db801e58251c',
    sha256: '154e291ecfa8be6ab8343560bcc109008fa7853eb5372533e8efdefc9b504c33',
    created: '2026-11-21T20:00:00.000Z',
    duration: 2.25,
    channels: 1,
    models: ['30089e05-99d1-4376-b32e-c263170674af'],
    model_info: { '30089e05-99d1-4376-b32e-c263170674af': { name: 'general-nova-3', arch: 'nova-3' } },
  },
  results: {
    channels: [
      {
        alternatives: [{ transcript: 'Good day. Hi!', confidence: 0.99, words }],
        detected_language: 'en',
        language_confidence: 0.97,
      },
    ],
    utterances: [utterance('Good day.', 0.08, 0.64, 0), utterance('Hi!', 1.7, 2, 1)],
  },
};

describeAudioVendor('Deepgram', {
  create: (baseUrl) => createDeepgram({ name: 'deepgram', baseUrl, apiKey }),
  listener: 'nova-3',
  speaker: 'aura-2-thalia-en',
  error: (message) => ({ err_code: 'Bad Request', err_msg: message, request_id: 'a847f427' }),
});

describe('audio of Deepgram', () => {
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
  const url = (): URL => new URL(server.requests.at(-1)?.url ?? '', 'http://deepgram');
  const query = (): Record<string, string | string[]> => {
    const { searchParams } = url();
    return Object.fromEntries(
      [...new Set(searchParams.keys())].map((name) => {
        const values = searchParams.getAll(name);
        return [name, values.length === 1 ? String(values[0]) : values];
      }),
    );
  };

  describe('transcripts of Deepgram', () => {
    beforeEach(() => {
      server.requests.length = 0;
      server.answer((response) => sendJson(response, 200, JSON.stringify(answer)));
    });
    type Request = NonNullable<Parameters<typeof transcription>[1]>;
    const transcribe = async (request: Request = {}, model = 'nova-3'): Promise<unknown> => {
      const { body } = await vendor.transcribe(transcription(model, request), collect());
      return JSON.parse(body);
    };

    it('Deepgram transcription sends the file itself with its length, and the key in a header', async () => {
      assert.deepEqual(await transcribe(), { text: 'Good day. Hi!', usage: { type: 'duration', seconds: 2.25 } });
      const [{ method, headers, body } = assert.fail()] = server.requests;
      assert.deepEqual([method, url().pathname, body], ['POST', '/v1/listen', audio]);
      assert.equal(headers.authorization, `Token ${apiKey}`);
      assert.equal(headers['content-type'], 'audio/wav');
      assert.equal(headers['content-length'], String(audio.length));
      assert.deepEqual(query(), { model: 'nova-3', smart_format: 'true', detect_language: 'true' });
    });

    it('Deepgram transcription never sends a file as JSON, which would be read as a link', async () => {
      for (const type of ['application/json', 'text/plain', 'audio/wav\r\nx: y', '']) {
        await transcribe({ file: { file: 'blob', name: 'x', type, bytes: audio.length } } as never);
        assert.equal(server.requests.at(-1)?.headers['content-type'], 'application/octet-stream', type);
      }
    });

    it('Deepgram transcription requests one language, several, or detection when the model supports it', async () => {
      const asked = async (options: Record<string, string | string[]>, model?: string) => {
        await transcribe({ options }, model);
        const { language, detect_language: detect } = query();
        return language ?? detect;
      };
      assert.equal(await asked({ language: 'de' }), 'de');
      assert.equal(await asked({ languages: ['de'] }), 'de');
      assert.deepEqual(await asked({ languages: ['de', 'en'] }), ['de', 'en']);
      assert.equal(await asked({}, 'nova-2'), 'true');
      assert.equal(await asked({}, 'nova-3-medical'), undefined);
    });

    it("Deepgram transcription sends keywords in the model's form and vendor fields unchanged, and omits hints", async () => {
      const options = {
        keywords: ['Sluice', 'BullMQ'],
        prompt: 'A talk',
        temperature: 0.3,
        chunking_strategy: 'auto',
        'chunking_strategy[type]': 'server_vad',
        numerals: 'true',
        smart_format: 'false',
        redact: ['pci', 'ssn'],
      };
      const common = { detect_language: 'true', smart_format: 'false', numerals: 'true', redact: ['pci', 'ssn'] };
      await transcribe({ options });
      assert.deepEqual(query(), { ...common, keyterm: options.keywords, model: 'nova-3' });
      await transcribe({ options }, 'nova-2');
      assert.deepEqual(query(), { ...common, keywords: options.keywords, model: 'nova-2' });
      for (const name of ['callback', 'callback_method', 'multichannel', 'summarize', 'detect_entities']) {
        await assert.rejects(transcribe({ options: { [name]: 'x' } }), { code: 'invalid_request_error', param: name });
      }
      assert.equal(server.requests.length, 2);
    });

    it('Deepgram transcription fills each format', async () => {
      const usage = { type: 'duration', seconds: 2.25 };
      const common = { task: 'transcribe', duration: 2.25, text: 'Good day. Hi!', usage };
      const timed = { ...common, language: 'en' };
      const segments = [
        { id: 0, start: 0.08, end: 0.64, text: 'Good day.', ...ofWhisper },
        { id: 1, start: 1.7, end: 2, text: 'Hi!', ...ofWhisper },
      ];
      const said = [
        { word: 'Good', start: 0.08, end: 0.32 },
        { word: 'day.', start: 0.32, end: 0.64 },
        { word: 'Hi!', start: 1.7, end: 2 },
      ];
      const granularities = (...list: string[]) => ({ options: { timestamp_granularities: list } });
      assert.deepEqual(await transcribe({ format: 'verbose_json' }), { ...timed, segments });
      assert.equal(query().utterances, 'true');
      assert.deepEqual(await transcribe({ format: 'verbose_json', ...granularities('word') }), {
        ...timed,
        words: said,
      });
      assert.equal(query().utterances, undefined);
      assert.deepEqual(await transcribe({ format: 'verbose_json', ...granularities('word', 'segment') }), {
        ...timed,
        segments,
        words: said,
      });
      const piece = (index: number, speaker: string) => {
        const { start, end, text } = segments[index] ?? assert.fail();
        return { type: 'transcript.text.segment', id: `seg_${index}`, start, end, text, speaker };
      };
      assert.deepEqual(await transcribe({ format: 'diarized_json' }), {
        ...common,
        segments: [piece(0, 'A'), piece(1, 'B')],
      });
      assert.deepEqual([query().diarize_model, query().utterances], ['latest', 'true']);
      for (const format of ['srt', 'vtt'] as const) {
        const { segments: cues } = (await transcribe({ format })) as { segments: { text: string; start: number }[] };
        assert.deepEqual(
          cues.map(({ text, start }) => [text, start]),
          [
            ['Good day.', 0.08],
            ['Hi!', 1.7],
          ],
        );
      }
    });

    it('Deepgram transcription reports the requested language when none was detected', async () => {
      const channels = [{ alternatives: [{ transcript: '', confidence: 0, words: [] }] }];
      const silent = { ...answer, results: { channels, utterances: [] } };
      server.answer((response) => sendJson(response, 200, JSON.stringify(silent)));
      const usage = { type: 'duration', seconds: 2.25 };
      assert.deepEqual(await transcribe({ format: 'verbose_json', options: { language: 'de' } }), {
        task: 'transcribe',
        language: 'de',
        duration: 2.25,
        text: '',
        usage,
        segments: [],
      });
      const { language } = (await transcribe({ format: 'verbose_json' }, 'nova-3-medical')) as { language: unknown };
      assert.equal(language, 'en', 'the language of a model that has one');
    });
  });

  describe('speech of Deepgram', () => {
    beforeEach(() => {
      server.requests.length = 0;
      server.answer((response) => sendAudio(response, 'abc'));
    });
    const speak = async (fields: object = {}, model = 'aura-2-thalia-en'): Promise<string> => {
      const sink = collect();
      await vendor.speak(speech(model, fields), sink);
      return audioOf(sink.frames).toString();
    };

    it('Deepgram speech sends the text as the body, and everything else in the query', async () => {
      assert.equal(await speak({ input: 'Grüße, "you"' }), 'abc');
      const [{ method, headers, body } = assert.fail()] = server.requests;
      assert.deepEqual([method, url().pathname, JSON.parse(body)], ['POST', '/v1/speak', { text: 'Grüße, "you"' }]);
      assert.equal(headers.authorization, `Token ${apiKey}`);
      assert.deepEqual(query(), { model: 'aura-2-thalia-en', encoding: 'mp3' });
    });

    it('Deepgram speech supports every format', async () => {
      for (const [format, asked] of Object.entries({
        opus: { encoding: 'opus', container: 'ogg' },
        aac: { encoding: 'aac' },
        flac: { encoding: 'flac' },
        wav: { encoding: 'linear16', container: 'wav' },
        pcm: { encoding: 'linear16', container: 'none', sample_rate: '24000' },
      })) {
        await speak({ response_format: format });
        assert.deepEqual(query(), { model: 'aura-2-thalia-en', ...asked });
      }
    });

    it('Deepgram speech sends the speed and vendor fields', async () => {
      await speak({ speed: 1.2, bit_rate: 32000, tag: ['a', 'b'] });
      const common = { model: 'aura-2-thalia-en', encoding: 'mp3' };
      assert.deepEqual(query(), { ...common, speed: '1.2', bit_rate: '32000', tag: ['a', 'b'] });
      await speak({ speed: 1 });
      assert.deepEqual(query(), common);
    });

    it("Deepgram speech has the voice of its model, accepts OpenAI's voices, and rejects any other", async () => {
      for (const voice of ['alloy', 'thalia', 'aura-2-thalia-en', { id: 'thalia' }]) await speak({ voice });
      await speak({ voice: 'asteria' }, 'aura-asteria-en');
      assert.equal(server.requests.length, 5);
      for (const voice of ['zeus', 'aura-2-zeus-en', '2', 'en']) {
        await assert.rejects(speak({ voice }), { code: 'invalid_request_error', param: 'voice' });
      }
      for (const name of ['callback', 'callback_method', 'encoding', 'container']) {
        await assert.rejects(speak({ [name]: 'x' }), { code: 'invalid_request_error', param: name });
      }
      await assert.rejects(speak({ extra: { a: 1 } }), { code: 'invalid_request_error', param: 'extra' });
      assert.equal(server.requests.length, 5);
    });

    it('Deepgram speech rejects fields that are too long for a URL, without a call', async () => {
      const many = Object.fromEntries(Array.from({ length: 1000 }, (_, index) => [`field${index}`, 'x']));
      for (const fields of [many, { tag: 'ü'.repeat(40_000) }]) {
        await assert.rejects(speak(fields), { code: 'invalid_request_error', message: /too long/ });
      }
      assert.equal(server.requests.length, 0);
      await speak({ tag: 'x'.repeat(7000) });
      assert.equal(server.requests.length, 1);
    });
  });

  it('Deepgram errors of both shapes keep their own message and code', async () => {
    for (const [body, vendorCode] of [
      [{ err_code: 'INVALID_QUERY_PARAMETER', err_msg: 'No such model.', request_id: 'x' }, 'INVALID_QUERY_PARAMETER'],
      [{ category: 'INVALID_JSON', message: 'No such model.', details: 'x', request_id: 'x' }, 'INVALID_JSON'],
    ] as const) {
      server.answer((response) => sendJson(response, 400, JSON.stringify(body)));
      const expected = { code: 'invalid_request_error', message: 'No such model.', vendorCode };
      await assert.rejects(vendor.transcribe(transcription('nova-9'), collect()), expected);
    }
  });
});
