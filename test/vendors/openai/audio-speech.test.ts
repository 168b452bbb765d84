import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import type { Readable } from 'node:stream';
import { after, before, describe, it } from 'node:test';
import fc from 'fast-check';
import type { ApiError } from '../../../shared/errors.ts';
import { executeSpeech } from '../../../workers/execute/execute-speech.ts';
import { createOpenAiDialect } from '../../../workers/vendors/openai/dialect.ts';
import type { CallFiles, FrameSink, Offering, VendorCall, VendorFrame } from '../../../workers/vendors/vendor.ts';
import { routedModel } from '../../support/routed-model.ts';
import {
  beginStream,
  callOf,
  collect,
  cut,
  type FixtureVendor,
  sendJson,
  sendStream,
  startFixtureVendor,
} from '../contracts/fixture-vendor.ts';

const request = { input: 'Hello', voice: 'alloy', response_format: 'mp3', something_new: [1] };
const usage = { input_tokens: 3, output_tokens: 90, total_tokens: 93 };

function speech(call: Partial<VendorCall> = {}, fields: object = {}): VendorCall {
  return callOf({ model: 'tts-1', request: JSON.stringify({ ...request, ...fields }), ...call });
}

function audioOf(frames: readonly VendorFrame[]): Buffer {
  return Buffer.concat(frames.map(({ text }) => Buffer.from(JSON.parse(text).audio, 'base64')));
}

function sendAudio(response: ServerResponse, parts: readonly Uint8Array[]): void {
  response.writeHead(200, { 'content-type': 'audio/mpeg' });
  for (const part of parts) if (part.length > 0) response.write(part);
  response.end();
}

const deltaEvent = (part: Uint8Array): string =>
  `data: ${JSON.stringify({ type: 'speech.audio.delta', audio: Buffer.from(part).toString('base64') })}\n\n`;
const doneEvent = `data: ${JSON.stringify({ type: 'speech.audio.done', usage })}\n\n`;

/** Keeps what is saved. */
function storing(fail?: Error): CallFiles & { readonly saved: Buffer[]; readonly contents: Readable[] } {
  const saved: Buffer[] = [];
  const contents: Readable[] = [];
  return {
    saved,
    contents,
    open: () => Promise.reject(new Error('no such file')),
    save: async (content, type) => {
      const parts: Buffer[] = [];
      contents.push(content as Readable);
      for await (const part of content as Readable) {
        if (fail !== undefined) throw fail;
        parts.push(part as Buffer);
      }
      const whole = Buffer.concat(parts);
      saved.push(whole);
      return { file: '2025010100/audio.mp3', type, bytes: whole.length };
    },
  };
}

describe('speech of the OpenAI dialect', () => {
  let server: FixtureVendor;
  let vendor: Offering<'speak'>;
  before(async () => {
    server = await startFixtureVendor();
    vendor = createOpenAiDialect({ name: 'openai', baseUrl: server.baseUrl, apiKey: 'sk-test-0123456789abcdef' });
  });
  after(async () => {
    await vendor.close();
    await server.close();
  });

  it("OpenAI speech sends the request with the vendor's own model and unknown fields unchanged", async () => {
    server.answer((response) => sendAudio(response, [Buffer.from('abc')]));
    await vendor.speak(speech({ model: 'a/"b"' }), collect());
    const received = server.requests.at(-1);
    assert.equal(received?.url, '/v1/audio/speech');
    assert.deepEqual(JSON.parse(received?.body ?? ''), { ...request, model: 'a/"b"' });
  });

  it('OpenAI speech yields the same audio however it is split, as bytes or events, in frames of at most 32 KiB', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.uint8Array({ minLength: 1, maxLength: 200 }),
        fc.integer({ min: 1, max: 600 }),
        fc.array(fc.nat(), { maxLength: 20 }),
        fc.array(fc.nat(), { maxLength: 20 }),
        fc.boolean(),
        async (seed, repeats, pieces, cuts, asEvents) => {
          const audio = Buffer.concat(Array.from({ length: repeats }, () => seed));
          const parts = cut(audio, pieces);
          server.answer((response) => {
            if (!asEvents) return sendAudio(response, parts);
            return sendStream(response, cut(Buffer.from(parts.map(deltaEvent).join('') + doneEvent), cuts));
          });
          const sink = collect();
          const fields = asEvents ? { stream_format: 'sse' } : {};
          const end = await vendor.speak(speech({}, fields), sink);
          assert.ok(audioOf(sink.frames).equals(audio));
          assert.ok(sink.frames.every(({ type, text }) => type === 'delta' && text.length < 44_000));
          assert.deepEqual(end.usage, asEvents ? usage : null);
        },
      ),
      { numRuns: 40 },
    );
  });

  it('OpenAI speech gathers many tiny pieces into few frames', async () => {
    const audio = randomBytes(3000);
    const head = 'HTTP/1.1 200 OK\r\ncontent-type: audio/mpeg\r\ntransfer-encoding: chunked\r\n\r\n';
    server.answer((response) => {
      const tiny = [...audio].map((byte) =>
        Buffer.concat([Buffer.from('1\r\n'), Buffer.from([byte]), Buffer.from('\r\n')]),
      );
      response.socket?.end(Buffer.concat([Buffer.from(head), ...tiny, Buffer.from('0\r\n\r\n')]));
    });
    const sink = collect();
    await vendor.speak(speech(), sink);
    assert.ok(audioOf(sink.frames).equals(audio));
    assert.ok(sink.frames.length < 100, `${sink.frames.length} frames`);
  });

  for (const asEvents of [false, true]) {
    const kind = asEvents ? 'events' : 'bytes';
    const fields = asEvents ? { stream_format: 'sse' } : {};

    it(`OpenAI speech fails with stream_interrupted when ${kind} break off, after the audio received`, async () => {
      const audio = randomBytes(50_000);
      server.answer((response) => {
        beginStream(response, { 'content-type': asEvents ? 'text/event-stream' : 'audio/mpeg' });
        response.write(asEvents ? deltaEvent(audio) : audio);
      });
      const sink = collect();
      let seen = 0;
      const write = (frame: VendorFrame): boolean => {
        seen += JSON.parse(frame.text).audio.length;
        if (seen >= (50_000 / 3) * 4) server.reset();
        return sink.write(frame);
      };
      await assert.rejects(vendor.speak(speech({}, fields), { ...sink, write }), { code: 'stream_interrupted' });
      assert.ok(audioOf(sink.frames).equals(audio));
    });

    it(`OpenAI speech closes the vendor's connection when the call is aborted in the middle of ${kind}`, async () => {
      const controller = new AbortController();
      let left: Promise<unknown> | undefined;
      server.answer((response) => {
        left = once(response, 'close');
        beginStream(response, { 'content-type': asEvents ? 'text/event-stream' : 'audio/mpeg' });
        response.write(asEvents ? deltaEvent(Buffer.from('abc')) : 'abc');
      });
      const write = (): boolean => {
        controller.abort();
        return true;
      };
      const call = vendor.speak(speech({ signal: controller.signal }, fields), { ...collect(), write });
      await assert.rejects(call, { code: 'cancelled' });
      await left;
    });
  }

  it('OpenAI speech rejects an HTML page, and accepts plain audio when events were requested', async () => {
    server.answer((response) => response.writeHead(200, { 'content-type': 'text/html' }).end('<h1>Oh</h1>'));
    for (const fields of [{}, { stream_format: 'sse' }]) {
      const sink = collect();
      await assert.rejects(vendor.speak(speech({}, fields), sink), { code: 'server_error', vendorStatus: undefined });
      assert.equal(sink.frames.length, 0);
    }
    const sink = collect();
    server.answer((response) => sendAudio(response, [Buffer.from('abc'), Buffer.from('def')]));
    const { usage: counted } = await vendor.speak(speech({}, { stream_format: 'sse' }), sink);
    assert.deepEqual([counted, audioOf(sink.frames).toString()], [null, 'abcdef']);
  });

  it("OpenAI speech is interrupted without speech.audio.done, and fails with the vendor's own error", async () => {
    const asEvents = { stream_format: 'sse' };
    server.answer((response) => sendStream(response, [deltaEvent(Buffer.from('abc'))]));
    await assert.rejects(vendor.speak(speech({}, asEvents), collect()), { code: 'stream_interrupted' });
    const error = '{"error":{"message":"Slow down.","code":"rate_limit_exceeded"}}';
    server.answer((response) => sendStream(response, [deltaEvent(Buffer.from('abc')), `data: ${error}\n\n`]));
    await assert.rejects(vendor.speak(speech({}, asEvents), collect()), { code: 'rate_limit_exceeded' });
    server.answer((response) => sendJson(response, 200, error));
    await assert.rejects(vendor.speak(speech(), collect()), { code: 'rate_limit_exceeded' });
    server.answer((response) => sendJson(response, 200, '{"audio":"?"}'));
    await assert.rejects(vendor.speak(speech(), collect()), { code: 'server_error' });
  });

  describe('executeSpeech', () => {
    const row = (events: boolean) => routedModel(events ? 'gpt-4o-mini-tts' : 'tts-1');
    const execute = (
      options: { keep?: boolean; stream?: boolean; events?: boolean; files?: CallFiles },
      sink: FrameSink,
    ): ReturnType<typeof executeSpeech> => {
      const { keep = false, stream = true, events = false, files = storing() } = options;
      const call = speech({ stream, files });
      return executeSpeech({ vendor, row: row(events), endpoint: 'audio.speech', keep, call, sink });
    };
    const audio = randomBytes(300_000);
    const answerAudio = () => server.answer((response) => sendAudio(response, [audio]));

    it('executeSpeech requests events for the usage when the vendor has them', async () => {
      server.answer((response) => sendStream(response, [deltaEvent(audio), doneEvent]));
      const end = await execute({ events: true }, collect());
      assert.equal(JSON.parse(server.requests.at(-1)?.body ?? '').stream_format, 'sse');
      assert.deepEqual(JSON.parse(end.body), { usage });
      answerAudio();
      assert.deepEqual(JSON.parse((await execute({}, collect())).body), { usage: null });
      assert.equal(JSON.parse(server.requests.at(-1)?.body ?? '').stream_format, undefined);
    });

    it('executeSpeech stores kept audio beside relaying it, and only stores it when nobody listens', async () => {
      answerAudio();
      for (const { keep, stream } of [
        { keep: true, stream: true },
        { keep: true, stream: false },
        { keep: false, stream: false },
      ]) {
        const files = storing();
        const sink = collect();
        const end = await execute({ keep, stream, files }, sink);
        const file = { file: '2025010100/audio.mp3', type: 'audio/mpeg', bytes: audio.length };
        assert.deepEqual(JSON.parse(end.body), { usage: null, file });
        assert.deepEqual(files.saved.map(digest), [digest(audio)]);
        assert.equal(digest(audioOf(sink.frames)), digest(stream ? audio : Buffer.alloc(0)));
      }
    });

    it('executeSpeech stores nothing of audio that breaks off or is empty', async () => {
      const files = storing();
      server.answer((response) => {
        beginStream(response, { 'content-type': 'audio/mpeg' });
        response.write(audio, () => server.reset());
      });
      await assert.rejects(execute({ keep: true, files }, collect()));
      server.answer((response) => sendAudio(response, []));
      await assert.rejects(execute({ keep: true, files }, collect()), { code: 'server_error' });
      assert.deepEqual(files.saved, []);
      assert.deepEqual(
        files.contents.map(({ destroyed }) => destroyed),
        [true, true],
        'whoever stores it learns that no more comes',
      );
    });

    it('executeSpeech reports outcome_unknown once audio has arrived, even when nobody listens', async () => {
      const error = '{"error":{"message":"no","code":"server_is_overloaded"}}';
      for (const [said, code, vendorStatus] of [
        [[], 'service_unavailable', 503],
        [[deltaEvent(audio)], 'outcome_unknown', undefined],
      ] as const) {
        server.answer((response) => sendStream(response, [...said, `data: ${error}\n\n`]));
        const failed = await execute({ events: true, stream: false }, collect()).then(
          () => undefined,
          (thrown: ApiError) => thrown,
        );
        assert.deepEqual([failed?.code, failed?.vendorStatus], [code, vendorStatus]);
      }
    });

    it('executeSpeech fails when the audio cannot be stored', async () => {
      answerAudio();
      const files = storing(new Error('the disk is full'));
      await assert.rejects(execute({ keep: true, files }, collect()), /disk is full|had an error/);
    });

    it('executeSpeech is as slow as its slowest reader', async () => {
      answerAudio();
      const sink = collect();
      const waiting: (() => void)[] = [];
      let waits = 0;
      const slow: FrameSink = {
        write: (frame) => !sink.write(frame),
        drained: () => {
          waits += 1;
          return new Promise((resolve) => waiting.push(resolve));
        },
      };
      const end = execute({ keep: true }, slow);
      let isOver = false;
      end.finally(() => {
        isOver = true;
      });
      while (!isOver) {
        await new Promise((resolve) => setImmediate(resolve));
        waiting.shift()?.();
      }
      await end;
      assert.ok(audioOf(sink.frames).equals(audio));
      assert.ok(waits > 2, `${waits} waits`);
    });
  });
});

function digest(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex');
}
