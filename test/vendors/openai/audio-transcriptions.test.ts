import assert from 'node:assert/strict';
import { once } from 'node:events';
import { Readable } from 'node:stream';
import { after, before, beforeEach, describe, it } from 'node:test';
import fc from 'fast-check';
import type { TranscriptionJobRequest } from '../../../shared/capabilities/transcription.ts';
import { type AnswerHolder, freeBytes } from '../../../workers/http/answer-memory.ts';
import { createOpenAiDialect } from '../../../workers/vendors/openai/dialect.ts';
import type { CallFiles, Offering, VendorCall } from '../../../workers/vendors/vendor.ts';
import {
  beginStream,
  callOf,
  collect,
  cut,
  type FixtureVendor,
  type ReceivedRequest,
  sendJson,
  sendStream,
  startFixtureVendor,
} from '../contracts/fixture-vendor.ts';

const audio = 'RIFF....WAVEfmt the very bytes';
const file = { file: '2025010100/blob', name: 'say "so".wav', type: 'audio/wav', bytes: audio.length };

/** One file, whose opened streams are kept, so that tests see them closed. */
function oneFile(): CallFiles & { readonly opened: Readable[] } {
  const opened: Readable[] = [];
  return {
    opened,
    open: async ({ blob }) => {
      assert.equal(blob, file.file);
      const content = Readable.from([audio.slice(0, 9), audio.slice(9)], { objectMode: false });
      opened.push(content);
      return { content, bytes: audio.length };
    },
    save: () => Promise.reject(new Error('nothing is to be stored')),
  };
}

function transcription(
  request: Partial<TranscriptionJobRequest> = {},
  call: Partial<VendorCall> = {},
): VendorCall & { readonly files: ReturnType<typeof oneFile> } {
  const whole = { task: 'transcribe', format: 'json', file, options: {}, ...request };
  const files = oneFile();
  return { ...callOf({ model: 'whisper-1', stream: false, request: JSON.stringify(whole), ...call }), files };
}

async function formOf(request: ReceivedRequest | undefined): Promise<FormData> {
  const headers = { 'content-type': String(request?.headers['content-type']) };
  return await new Response(request?.body, { headers }).formData();
}

const delta = (text: string): object => ({ type: 'transcript.text.delta', delta: text });
const done = { type: 'transcript.text.done', text: 'Good day, é 😀.', usage: { type: 'tokens', total_tokens: 9 } };
const sse = (...data: object[]): string => data.map((event) => `data: ${JSON.stringify(event)}\n\n`).join('');
const said = [delta('Good'), delta(' day, é'), delta(' 😀.')];

describe('transcriptions of the OpenAI dialect', () => {
  let server: FixtureVendor;
  let vendor: Offering<'transcribe'>;
  before(async () => {
    server = await startFixtureVendor();
    vendor = createOpenAiDialect({ name: 'openai', baseUrl: server.baseUrl, apiKey: 'sk-test-0123456789abcdef' });
  });
  after(async () => {
    await vendor.close();
    await server.close();
  });
  beforeEach(() => server.answer((response) => sendJson(response, 200, '{"text":"Good day."}')));

  it('OpenAI transcription sends the file from its blob with its length, after the fields', async () => {
    const options = {
      language: 'en',
      temperature: 0.2,
      include: ['logprobs'],
      known_speaker_names: ['a', 'b'],
      something_new: 'x',
      'chunking_strategy[type]': 'server_vad',
    };
    const call = transcription({ options });
    await vendor.transcribe(call, collect());
    const received = server.requests.at(-1);
    assert.equal(received?.url, '/v1/audio/transcriptions');
    assert.equal(received?.headers['content-length'], String(received?.body.length));
    const form = await formOf(received);
    assert.deepEqual(
      [...form].filter(([, value]) => typeof value === 'string'),
      [
        ['model', 'whisper-1'],
        ['response_format', 'json'],
        ['language', 'en'],
        ['temperature', '0.2'],
        ['include[]', 'logprobs'],
        ['known_speaker_names[]', 'a'],
        ['known_speaker_names[]', 'b'],
        ['something_new', 'x'],
        ['chunking_strategy[type]', 'server_vad'],
      ],
    );
    const sent = form.get('file') as unknown as File;
    assert.equal(await sent.text(), audio);
    assert.equal(sent.name, 'say "so".wav');
    assert.equal(sent.type, 'audio/wav');
  });

  it('OpenAI transcription requests the format it needs, at the path of its task', async () => {
    const asked = {
      json: 'json',
      text: 'json',
      srt: 'verbose_json',
      vtt: 'verbose_json',
      verbose_json: 'verbose_json',
    };
    for (const task of ['transcribe', 'translate'] as const) {
      for (const [format, vendors] of Object.entries({ ...asked, diarized_json: 'diarized_json' })) {
        await vendor.transcribe(transcription({ task, format: format as keyof typeof asked }), collect());
        const received = server.requests.at(-1);
        assert.equal(received?.url, task === 'translate' ? '/v1/audio/translations' : '/v1/audio/transcriptions');
        assert.equal((await formOf(received)).get('response_format'), vendors);
      }
    }
  });

  it("OpenAI transcription answers a held call with the vendor's body and no frame", async () => {
    const body = { task: 'transcribe', text: 'Hi', duration: 1.5, segments: [{ id: 0 }], usage: { type: 'duration' } };
    server.answer((response) => sendJson(response, 200, JSON.stringify(body)));
    const sink = collect();
    const end = await vendor.transcribe(transcription(), sink);
    assert.deepEqual(JSON.parse(end.body), body);
    assert.deepEqual(end.usage, { type: 'duration' });
    assert.deepEqual(end.quantities, { seconds: 1.5 });
    assert.equal(sink.frames.length, 0);
  });

  it('OpenAI transcription counts a long answer as memory of its job', async () => {
    server.answer((response) => sendJson(response, 200, JSON.stringify({ text: 'x'.repeat(freeBytes) })));
    const holder: AnswerHolder = {};
    await vendor.transcribe({ ...transcription(), holder }, collect());
    assert.equal(holder.holdsAnswer, true);
  });

  it('streamed OpenAI transcription counts its segments as memory of its job until it ends, also when they have become frames', async () => {
    const segment = { type: 'transcript.text.segment', id: 'seg_1', start: 0, end: 1, text: 'x'.repeat(freeBytes) };
    server.answer((response) => sendStream(response, [sse(segment), sse(delta('Good')), sse(done)]));
    const holder: AnswerHolder = {};
    const { body } = await vendor.transcribe({ ...transcription({}, { stream: true }), holder }, collect());
    assert.equal(JSON.parse(body).segments.length, 1);
    assert.equal(holder.holdsAnswer, true);
  });

  it('a transcript of 0 seconds has no length that could be charged, whoever says it, so that it does not come for nothing', async () => {
    const usage = { type: 'duration', seconds: 0 };
    for (const body of [
      { text: 'Hi', duration: 0 },
      { text: 'Hi', usage },
      { text: 'Hi', duration: 0, usage },
    ]) {
      for (const request of [{}, { format: 'verbose_json' as const }, { is_timed: true }]) {
        server.answer((response) => sendJson(response, 200, JSON.stringify(body)));
        const end = await vendor.transcribe(transcription(request), collect());
        assert.deepEqual([end.usage, 'quantities' in end], [null, false]);
      }
    }
    server.answer((response) => sendJson(response, 200, JSON.stringify({ text: 'Hi', duration: 2, usage })));
    const measured = await vendor.transcribe(transcription({ format: 'verbose_json' }), collect());
    assert.deepEqual([measured.usage, measured.quantities], [null, { seconds: 2 }]);
  });

  it('OpenAI transcription rejects a held answer that has no text or is an error', async () => {
    for (const [body, code] of [
      ['{"duration":1}', 'server_error'],
      ['[]', 'server_error'],
      ['', 'server_error'],
      ['{"error":{"message":"No.","code":"rate_limit_exceeded"}}', 'rate_limit_exceeded'],
    ] as const) {
      server.answer((response) => sendJson(response, 200, body));
      await assert.rejects(vendor.transcribe(transcription(), collect()), { code });
    }
  });

  it('OpenAI transcription streams events as delta frames, however their bytes are split, and ends with the last', async () => {
    const segment = { type: 'transcript.text.segment', id: 's', start: 0, end: 1, text: 'Good', speaker: 'A' };
    const withSegment = [said[0] as object, segment, ...said.slice(1)];
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(said, withSegment),
        fc.constantFrom('', 'data: [DONE]\n\n'),
        fc.array(fc.nat(), { maxLength: 30 }),
        async (events, after, places) => {
          const bytes = Buffer.from(sse(...events, done) + after);
          server.answer((response) => sendStream(response, cut(bytes, places)));
          const sink = collect();
          const { body, usage } = await vendor.transcribe(transcription({}, { stream: true }), sink);
          assert.deepEqual(sink.data(), events);
          const segments = events === said ? {} : { segments: [segment] };
          assert.deepEqual(JSON.parse(body), { text: done.text, usage: done.usage, ...segments });
          assert.deepEqual(usage, done.usage);
        },
      ),
      { numRuns: 40 },
    );
    assert.equal((await formOf(server.requests.at(-1))).get('stream'), 'true');
  });

  it('OpenAI transcription turns a whole transcript into a stream of one delta', async () => {
    const sink = collect();
    const end = await vendor.transcribe(transcription({}, { stream: true }), sink);
    assert.deepEqual(sink.data(), [delta('Good day.')]);
    assert.deepEqual(JSON.parse(end.body), { text: 'Good day.' });
  });

  it("OpenAI transcription fails with stream_interrupted when events break off, and with the vendor's own error", async () => {
    server.answer((response) => sendStream(response, [sse(...said)]));
    await assert.rejects(vendor.transcribe(transcription({}, { stream: true }), collect()), {
      code: 'stream_interrupted',
    });
    server.answer((response) => sendStream(response, ['']));
    await assert.rejects(vendor.transcribe(transcription({}, { stream: true }), collect()), { code: 'server_error' });
    const error = { error: { message: 'Slow down.', code: 'rate_limit_exceeded' } };
    server.answer((response) => sendStream(response, [sse(...said, error)]));
    await assert.rejects(vendor.transcribe(transcription({}, { stream: true }), collect()), {
      code: 'rate_limit_exceeded',
    });
  });

  it('OpenAI transcription makes the vendor wait while the frames are not taken', async () => {
    server.answer((response) => sendStream(response, [sse(said[0] as object), sse(...said.slice(1), done)]));
    const sink = collect();
    let waits = 0;
    const slow = { ...sink, write: (frame: (typeof sink.frames)[number]) => !sink.write(frame) };
    const drained = async (): Promise<void> => {
      waits += 1;
    };
    await vendor.transcribe(transcription({}, { stream: true }), { ...slow, drained });
    assert.deepEqual(sink.data(), said);
    assert.ok(waits > 0);
  });

  it('OpenAI transcription leaves no file open when it is sent, rejected or aborted', async () => {
    const calls: [VendorCall & { files: ReturnType<typeof oneFile> }, (() => void) | undefined][] = [];
    calls.push([transcription(), undefined]);
    calls.push([transcription({}, { signal: AbortSignal.abort() }), undefined]);
    const controller = new AbortController();
    calls.push([transcription({}, { stream: true, signal: controller.signal }), () => controller.abort()]);
    for (const [call, abort] of calls) {
      if (abort !== undefined) {
        server.answer((response) => {
          beginStream(response);
          abort();
        });
      }
      await vendor.transcribe(call, collect()).catch(() => undefined);
      const [content] = call.files.opened;
      assert.ok(content, 'the file was opened');
      if (!content.closed) await once(content, 'close');
    }
  });
});
