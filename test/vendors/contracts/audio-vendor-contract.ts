import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { after, before, describe, it } from 'node:test';
import type { TranscriptionSegment } from 'openai/resources/audio/transcriptions';
import type { TranscriptionJobRequest } from '../../../shared/capabilities/transcription.ts';
import type { ApiError } from '../../../shared/errors.ts';
import { type AnswerHolder, freeBytes } from '../../../workers/http/answer-memory.ts';
import type {
  CallFiles,
  FrameSink,
  Offering,
  Vendor,
  VendorAnswer,
  VendorCall,
  VendorFrame,
} from '../../../workers/vendors/vendor.ts';
import { failureOf } from './failure-of.ts';
import { beginStream, callOf, collect, type FixtureVendor, sendJson, startFixtureVendor } from './fixture-vendor.ts';

export const apiKey = 'key-0123456789abcdef';
export const audio = 'RIFF....WAVEfmt the very bytes';
const file = { file: '2026112100/blob', name: 'say.wav', type: 'audio/wav', bytes: audio.length };

/** What every segment has of `verbose_json` beside its times and its text, from a vendor that has nothing like it. */
export const ofWhisper: Omit<TranscriptionSegment, 'id' | 'start' | 'end' | 'text'> = {
  ...{ seek: 0, tokens: [], temperature: 0, avg_logprob: 0, compression_ratio: 1, no_speech_prob: 0 },
};

/** One file, whose opened streams are kept, so that tests see them closed. */
function oneFile(): CallFiles & { readonly opened: Readable[] } {
  const opened: Readable[] = [];
  return {
    opened,
    open: async () => {
      const content = Readable.from([audio.slice(0, 9), audio.slice(9)], { objectMode: false });
      opened.push(content);
      return { content, bytes: audio.length };
    },
    save: () => Promise.reject(new Error('nothing is to be stored')),
  };
}

/** A call for a transcript. */
export function transcription(
  model: string,
  request: Partial<TranscriptionJobRequest> = {},
  call: Partial<VendorCall> = {},
): VendorCall & { readonly files: ReturnType<typeof oneFile> } {
  const whole = { task: 'transcribe', format: 'json', file, options: {}, ...request };
  return { ...callOf({ model, stream: false, request: JSON.stringify(whole), ...call }), files: oneFile() };
}

/** A call for speech. */
export function speech(model: string, fields: object = {}, call: Partial<VendorCall> = {}): VendorCall {
  const request = JSON.stringify({ input: 'Hello', voice: 'alloy', response_format: 'mp3', ...fields });
  return callOf({ model, request, ...call });
}

export function sendAudio(response: ServerResponse, content: string | Buffer): void {
  response.writeHead(200, { 'content-type': 'audio/mpeg' }).end(content);
}

export function audioOf(frames: readonly VendorFrame[]): Buffer {
  return Buffer.concat(frames.map(({ text }) => Buffer.from(JSON.parse(text).audio, 'base64')));
}

/** A vendor of audio, and how it says what is wrong. */
export interface AudioVendor {
  create(baseUrl: string): Offering<'transcribe'> & Pick<Vendor, 'speak'>;
  readonly listener: string;
  /** Left out: the vendor does not speak. */
  readonly speaker?: string;
  /** A body of an error of the vendor's. */
  error(message: string): object;
}

/** Faults that every vendor of audio has to bear. */
export function describeAudioVendor(name: string, wire: AudioVendor): void {
  describe(`${name} audio faults`, () => {
    let server: FixtureVendor;
    let vendor: ReturnType<AudioVendor['create']>;
    before(async () => {
      server = await startFixtureVendor();
      vendor = wire.create(server.baseUrl);
    });
    after(async () => {
      await vendor.close();
      await server.close();
    });
    const failure = (task: Promise<unknown>): Promise<ApiError> => failureOf(task, [apiKey]);
    const speak = (call: Partial<VendorCall>, sink: FrameSink, fields: object = {}): Promise<VendorAnswer> => {
      assert.ok(vendor.speak && wire.speaker);
      return vendor.speak(speech(wire.speaker, fields, call), sink);
    };
    const both = async (call: Partial<VendorCall> = {}): Promise<ApiError[]> => [
      await failure(vendor.transcribe(transcription(wire.listener, {}, call), collect())),
      ...(wire.speaker === undefined ? [] : [await failure(speak(call, collect()))]),
    ];
    // A skipped test would look like a machine that lacks a part.
    const itSpeaks = (title: string, test: () => Promise<void>): void => {
      if (wire.speaker !== undefined) it(title, test);
    };

    it(`${name} audio maps each status to the matching code, and tries once`, async () => {
      for (const [status, code] of [
        [400, 'invalid_request_error'],
        [401, 'service_unavailable'],
        [402, 'service_unavailable'],
        [403, 'service_unavailable'],
        [413, 'invalid_request_error'],
        [429, 'rate_limit_exceeded'],
        [500, 'server_error'],
        [503, 'service_unavailable'],
        [504, 'timeout'],
        [529, 'service_unavailable'],
      ] as const) {
        server.requests.length = 0;
        const body = JSON.stringify(wire.error(`No good: ${apiKey}`));
        server.answer((response) => sendJson(response, status, body, { 'retry-after': '7' }));
        for (const error of await both()) {
          assert.equal(error.code, code, String(status));
          if (code === 'invalid_request_error') assert.match(error.message, /^No good: \[key\]$/);
          if (status === 429) assert.equal(error.retryAfterMs, 7000);
        }
        assert.equal(server.requests.length, wire.speaker === undefined ? 1 : 2);
      }
    });

    it(`${name} audio fails with server_error for non-JSON errors, a reset and unusable JSON`, async () => {
      server.answer((response) => response.writeHead(500, { 'content-type': 'text/html' }).end('<h1>Oh</h1>'));
      for (const { code } of await both()) assert.equal(code, 'server_error');
      server.answer((response) => response.socket?.resetAndDestroy());
      for (const { code } of await both()) assert.equal(code, 'server_error');
      for (const body of ['[]', '{', '', '{}', '{"results":7,"words":7}', 'null']) {
        server.answer((response) => sendJson(response, 200, body));
        for (const { code } of await both()) assert.equal(code, 'server_error', body);
      }
    });

    it(`${name} transcription counts a long answer as memory of its job`, async () => {
      const task = { id: 'task', upload_url: 'https://a.example/file', status: 'completed' };
      server.answer((response) => sendJson(response, 200, JSON.stringify(task) + ' '.repeat(freeBytes)));
      const holder: AnswerHolder = {};
      await vendor.transcribe(transcription(wire.listener, {}, { holder }), collect()).catch(() => undefined);
      assert.equal(holder.holdsAnswer, true);
    });

    it(`${name} audio fails with timeout when the vendor falls silent`, async () => {
      server.answer(() => undefined);
      for (const { code } of await both({ silenceMs: 100 })) assert.equal(code, 'timeout');
      server.reset();
    });

    it(`${name} audio is cancelled with the call, and leaves no file open`, async () => {
      const calls: ReturnType<typeof transcription>[] = [];
      for (const whileUnderWay of [false, true]) {
        const controller = new AbortController();
        if (!whileUnderWay) controller.abort();
        server.answer(() => controller.abort());
        const call = transcription(wire.listener, {}, { signal: controller.signal });
        calls.push(call);
        assert.equal((await failure(vendor.transcribe(call, collect()))).code, 'cancelled');
      }
      server.answer((response) => sendJson(response, 400, '{}'));
      const refused = transcription(wire.listener);
      calls.push(refused);
      await failure(vendor.transcribe(refused, collect()));
      for (const { files } of calls) {
        const [content] = files.opened;
        assert.ok(content, 'the file was opened');
        if (!content.closed) await once(content, 'close');
      }
    });

    it(`${name} audio does not accept a truncated transcript`, async () => {
      server.answer((response) => {
        response.writeHead(200, { 'content-type': 'application/json', 'content-length': '5000' });
        response.write('{"text":"Good', () => server.reset());
      });
      assert.equal((await failure(vendor.transcribe(transcription(wire.listener), collect()))).code, 'server_error');
    });

    itSpeaks(
      `${name} speech rejects an HTML page, or an error under a status of success, instead of audio`,
      async () => {
        for (const type of [
          'text/html',
          'Application/JSON',
          'application/problem+json; charset=utf-8',
          'application/xml',
        ]) {
          server.answer((response) => response.writeHead(200, { 'content-type': type }).end('{"oh": "<h1>Oh</h1>"}'));
          const sink = collect();
          const { code, vendorStatus } = await failure(speak({}, sink));
          assert.deepEqual([code, vendorStatus, sink.frames.length], ['server_error', undefined, 0], type);
        }
      },
    );

    itSpeaks(`${name} speech relays audio in frames of at most 32 KiB, however slow the listener is`, async () => {
      const content = randomBytes(200_000);
      server.answer((response) => sendAudio(response, content));
      const sink = collect();
      let waits = 0;
      const slow = {
        write: (frame: VendorFrame) => !sink.write(frame),
        drained: async () => {
          waits += 1;
        },
      };
      const end = await speak({}, slow);
      assert.deepEqual(end, { body: '{"usage":null}', usage: null });
      assert.ok(audioOf(sink.frames).equals(content));
      assert.ok(sink.frames.every(({ type, text }) => type === 'delta' && text.length < 44_000));
      assert.ok(waits > 0);
    });

    itSpeaks(
      `${name} speech fails with stream_interrupted when the audio breaks off, after the audio received`,
      async () => {
        server.answer((response) => {
          beginStream(response, { 'content-type': 'audio/mpeg' });
          response.write('abc');
        });
        const sink = collect();
        const write = (frame: VendorFrame): boolean => {
          server.reset();
          return sink.write(frame);
        };
        const error = await failure(speak({}, { ...sink, write }));
        assert.equal(error.code, 'stream_interrupted');
        assert.equal(audioOf(sink.frames).toString(), 'abc');
      },
    );

    it(`${name} audio rejects unsupported transcription fields by name, without a call`, async () => {
      server.requests.length = 0;
      for (const [param, request, call] of [
        ['model', { task: 'translate' }, {}],
        ['stream', {}, { stream: true }],
        ['include', { options: { include: ['logprobs'] } }, {}],
        ['known_speaker_names', { options: { known_speaker_names: ['a'] } }, {}],
        ['known_speaker_references', { options: { known_speaker_references: ['a'] } }, {}],
      ] as const) {
        const error = await failure(vendor.transcribe(transcription(wire.listener, request, call), collect()));
        assert.deepEqual([error.code, error.param], ['invalid_request_error', param]);
      }
      assert.equal(server.requests.length, 0);
    });

    itSpeaks(`${name} speech rejects unsupported fields by name, without a call`, async () => {
      server.requests.length = 0;
      for (const [param, fields] of [
        ['instructions', { instructions: 'Whisper.' }],
        ['stream_format', { stream_format: 'sse' }],
      ] as const) {
        const error = await failure(speak({}, collect(), fields));
        assert.deepEqual([error.code, error.param], ['invalid_request_error', param]);
      }
      assert.equal(server.requests.length, 0);
    });
  });
}
