import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import OpenAI, { toFile } from 'openai';
import { AudioInspector } from '../../sandbox/audio/audio-inspector.ts';
import { type RunningSandbox, startSandbox } from '../../sandbox/server.ts';
import { type JournalEntry, vendorCalls } from '../support/vendor-journal.ts';

let sandbox: RunningSandbox;
let client: OpenAI;
let wav: Buffer;
before(async () => {
  sandbox = await startSandbox({ journal: true });
  client = new OpenAI({ apiKey: 'none', baseURL: `${sandbox.url}/v1`, maxRetries: 0 });
  wav = await speech('wav');
});
after(() => sandbox.close());

const model = 'sandbox-transcribe';
const file = (bytes: Buffer = wav) => toFile(bytes, 'audio.bin');

async function speech(response_format: 'wav' | 'mp3' | 'flac'): Promise<Buffer> {
  const input = 'Four words are said.';
  const answer = await client.audio.speech.create({ model: 'sandbox-speech', voice: 'nova', input, response_format });
  return Buffer.from(await answer.arrayBuffer());
}

function secondsOf(bytes: Buffer): number {
  return (bytes.length - 44) / 48_000;
}

const journal = (testId: string): Promise<JournalEntry[]> => vendorCalls({ sandbox }, testId);

/** What the inspector says of a file that arrives in pieces of that many bytes. */
function inspect(bytes: Buffer, piece: number) {
  const inspector = new AudioInspector();
  for (let start = 0; start < bytes.length; start += piece) inspector.push(bytes.subarray(start, start + piece));
  return inspector.end();
}

function numbers(width: 1 | 2 | 4, ...values: number[]): Buffer {
  const bytes = Buffer.alloc(width * values.length);
  for (const [index, value] of values.entries()) bytes.writeUIntBE(value, index * width, width);
  return bytes;
}

function box(name: string, ...content: Buffer[]): Buffer {
  const whole = Buffer.concat(content);
  return Buffer.concat([numbers(4, whole.length + 8), Buffer.from(name, 'latin1'), whole]);
}

/** 3.5 seconds by `mvhd`, stereo of 44.1 kHz, the sound before what describes it. */
function mp4(): Buffer {
  const mvhd = box('mvhd', numbers(4, 0, 0, 0, 1000, 3500), Buffer.alloc(80));
  const entry = [Buffer.alloc(16), numbers(2, 2, 16, 0, 0, 44_100, 0), Buffer.alloc(20)];
  const stsd = box('stsd', numbers(4, 0, 1), box('mp4a', ...entry));
  const moov = box('moov', mvhd, box('trak', box('mdia', box('minf', box('stbl', stsd)))));
  return Buffer.concat([box('ftyp', Buffer.from('M4A 0000')), box('mdat', Buffer.alloc(5000)), moov]);
}

function oggPage(granule: bigint, content: Buffer): Buffer {
  const head = Buffer.alloc(28);
  head.write('OggS', 'latin1');
  head.writeBigInt64LE(granule, 6);
  head.writeUInt8(1, 26);
  head.writeUInt8(content.length, 27);
  return Buffer.concat([head, content]);
}

/** Two seconds, of which 312 samples are not heard. */
function ogg(): Buffer {
  const opusHead = Buffer.concat([Buffer.from('OpusHead\x01\x01'), Buffer.from([0x38, 0x01]), Buffer.alloc(7)]);
  const sound = Buffer.alloc(200);
  const pages = [oggPage(0n, opusHead), oggPage(0n, sound), oggPage(-1n, sound), oggPage(96_312n, sound)];
  return Buffer.concat(pages);
}

function element(id: number[], ...content: Buffer[]): Buffer {
  const whole = Buffer.concat(content);
  return Buffer.concat([Buffer.from(id), numbers(2, 0x4000 + whole.length), whole]);
}

/** @param duration in milliseconds; undefined: as a browser records, without one and without sizes. */
function webm(duration?: number): Buffer {
  const float = (value: number) => {
    const bytes = Buffer.alloc(8);
    bytes.writeDoubleBE(value);
    return bytes;
  };
  const info = element(
    [0x15, 0x49, 0xa9, 0x66],
    element([0x2a, 0xd7, 0xb1], Buffer.from([0x0f, 0x42, 0x40])),
    ...(duration === undefined ? [] : [element([0x44, 0x89], float(duration))]),
  );
  const sound = element([0xe1], element([0xb5], float(48_000)), element([0x9f], Buffer.from([1])));
  const tracks = element([0x16, 0x54, 0xae, 0x6b], element([0xae], sound));
  const block = (time: number) => element([0xa3], Buffer.from([0x81]), numbers(2, time), Buffer.alloc(100));
  const clusterHead = Buffer.from([0x1f, 0x43, 0xb6, 0x75, 0xff, 0xe7, 0x82, 0x03, 0xe8]);
  const segmentHead = Buffer.from([0x18, 0x53, 0x80, 0x67, 0x01, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]);
  const parts = [element([0x1a, 0x45, 0xdf, 0xa3], Buffer.alloc(20)), segmentHead, info, tracks, clusterHead];
  return Buffer.concat([...parts, block(0), block(250)]);
}

describe('AudioInspector', () => {
  it('AudioInspector finds format and duration however the file is split', async () => {
    const cases: [Buffer, object][] = [
      [wav, { format: 'WAV', seconds: secondsOf(wav), sampleRate: 24_000, channels: 1 }],
      [await speech('flac'), { format: 'FLAC', seconds: secondsOf(wav), sampleRate: 24_000, channels: 1 }],
      [mp4(), { format: 'MP4', seconds: 3.5, sampleRate: 44_100, channels: 2 }],
      [ogg(), { format: 'Ogg Opus', seconds: 2, sampleRate: 48_000, channels: 1 }],
      [webm(1500), { format: 'WebM', seconds: 1.5, sampleRate: 48_000, channels: 1 }],
      [webm(), { format: 'WebM', seconds: 1.25, sampleRate: 48_000, channels: 1 }],
    ];
    for (const [bytes, expected] of cases) {
      for (const piece of [1, 7, 1000, bytes.length]) {
        const facts = inspect(bytes, piece);
        assert.deepEqual(
          { ...facts, seconds: Math.round((facts?.seconds ?? 0) * 1e6) / 1e6 },
          {
            ...expected,
            seconds: Math.round((expected as { seconds: number }).seconds * 1e6) / 1e6,
          },
        );
      }
    }
  });

  it('AudioInspector counts the frames of an MP3, whatever surrounds them', async () => {
    const mp3 = await speech('mp3');
    const plain = inspect(mp3, 333);
    assert.ok(Math.abs((plain?.seconds ?? 0) - secondsOf(wav)) < 0.15);
    assert.deepEqual([plain?.format, plain?.sampleRate, plain?.channels], ['MP3', 24_000, 1]);
    // A tag whose length is written with seven bits per byte, and one at the end.
    const tag = Buffer.concat([Buffer.from('ID3\x04\0\0'), Buffer.from([0, 0, 2, 1]), Buffer.alloc(257, 0xff)]);
    const tagged = Buffer.concat([tag, mp3, Buffer.from('TAG'), Buffer.alloc(125)]);
    for (const piece of [1, 5, tagged.length]) assert.deepEqual(inspect(tagged, piece), plain);
    // A frame has 576 samples; one that is cut off is not counted.
    const short = inspect(mp3.subarray(0, -10), 50);
    const frames = ((plain?.seconds ?? 0) - (short?.seconds ?? 0)) / (576 / 24_000);
    assert.equal(Math.round(frames * 1000) / 1000, 1);
    const half = inspect(mp3.subarray(0, mp3.length / 2), 100);
    assert.ok(Math.abs((half?.seconds ?? 0) * 2 - (plain?.seconds ?? 0)) < 0.06);
  });

  it('AudioInspector measures a WAV whose writer did not know its size', () => {
    for (const size of [0, 0xffffffff]) {
      const live = Buffer.from(wav);
      live.writeUInt32LE(size, 40);
      assert.deepEqual(inspect(live, 999), inspect(wav, 999));
    }
  });

  it('AudioInspector returns undefined for anything but audio, and for a file truncated before its length', () => {
    const others = [
      '',
      'x',
      'RIFF',
      'hello world, this is text',
      '\x89PNG\r\n\x1a\n0000000000',
      'ID3',
      '\xff\xfb\x90\x00zzz',
    ];
    for (const text of others) assert.equal(inspect(Buffer.from(text, 'latin1'), 3), undefined, text);
    for (const bytes of [wav, mp4(), ogg(), webm()]) assert.equal(inspect(bytes.subarray(0, 30), 7), undefined);
  });
});

describe('sandbox POST /v1/audio/transcriptions', () => {
  it('sandbox POST /v1/audio/transcriptions returns format, duration, rate and channels of the file', async () => {
    const duration = secondsOf(wav).toFixed(2);
    const usage = { type: 'duration', seconds: Math.ceil(secondsOf(wav)) };
    const text = `Audio of ${duration} seconds, WAV, 24000 Hz, mono.`;
    assert.deepEqual(await client.audio.transcriptions.create({ model, file: await file() }), { text, usage });
    for (const [bytes, expected] of [
      [await speech('flac'), `Audio of ${duration} seconds, FLAC, 24000 Hz, mono.`],
      [mp4(), 'Audio of 3.50 seconds, MP4, 44100 Hz, stereo.'],
      [ogg(), 'Audio of 2.00 seconds, Ogg Opus, 48000 Hz, mono.'],
      [webm(), 'Audio of 1.25 seconds, WebM, 48000 Hz, mono.'],
    ] as const) {
      assert.equal((await client.audio.transcriptions.create({ model, file: await file(bytes) })).text, expected);
    }
    const mp3 = await client.audio.transcriptions.create({ model, file: await file(await speech('mp3')) });
    assert.match(mp3.text, /^Audio of \d\.\d\d seconds, MP3, 24000 Hz, mono\.$/);
  });

  it('sandbox POST /v1/audio/transcriptions returns segments and words that cover the duration', async () => {
    const verbose = await client.audio.transcriptions.create({
      ...{ model, file: await file(), response_format: 'verbose_json', language: 'de', prompt: 'Otters,\n  please' },
      timestamp_granularities: ['word', 'segment'],
    });
    assert.deepEqual(
      [verbose.language, (verbose as { task?: string }).task, verbose.usage?.type],
      ['german', 'transcribe', 'duration'],
    );
    assert.match(verbose.text, /mono\. Its language is said to be de\. The hint was: Otters, please$/);
    assert.equal(verbose.segments?.map(({ text }) => text).join(''), ` ${verbose.text}`);
    assert.deepEqual(
      verbose.words?.map(({ word }) => word),
      verbose.text.split(' ').map((word) => word.replace(/[,.:]$/, '')),
    );
    for (const times of [verbose.segments, verbose.words]) {
      assert.ok(times !== undefined && times.length > 3);
      assert.equal(times[0]?.start, 0);
      assert.equal(times.at(-1)?.end, verbose.duration);
      for (const [index, { start, end }] of times.entries()) {
        assert.ok(start < end);
        if (index > 0) assert.equal(start, times[index - 1]?.end);
      }
    }
    const bare = await client.audio.transcriptions.create({
      model,
      file: await file(),
      response_format: 'verbose_json',
    });
    assert.ok(bare.segments !== undefined && bare.words === undefined);
    const words = await client.audio.transcriptions.create({
      ...{ model, file: await file(), response_format: 'verbose_json', timestamp_granularities: ['word'] },
    });
    assert.ok(words.segments === undefined && words.words !== undefined);
  });

  it('sandbox POST /v1/audio/transcriptions returns text, SRT and WebVTT', async () => {
    const ask = async (response_format: 'text' | 'srt' | 'vtt') =>
      client.audio.transcriptions.create({ model, file: await file(mp4()), response_format });
    assert.equal(await ask('text'), 'Audio of 3.50 seconds, MP4, 44100 Hz, stereo.\n');
    const [srt, vtt] = [await ask('srt'), await ask('vtt')];
    assert.match(srt, /^1\n00:00:00,000 --> 00:00:0\d,\d{3}\nAudio of 3\.50 seconds,\n\n2\n/);
    assert.match(srt, /--> 00:00:03,500\nstereo\.\n\n$/);
    assert.match(vtt, /^WEBVTT\n\n00:00:00\.000 --> 00:00:0\d\.\d{3}\nAudio of 3\.50 seconds,\n\n/);
    assert.equal(vtt.slice('WEBVTT\n\n'.length), srt.replace(/^\d+\n/gm, '').replace(/(\d),(\d{3})/g, '$1.$2'));
  });

  it('sandbox POST /v1/audio/transcriptions streams its text, with log probabilities on request', async () => {
    const stream = await client.audio.transcriptions.create({
      ...{ model, file: await file(), stream: true, include: ['logprobs'], chunking_strategy: { type: 'server_vad' } },
    });
    let text = '';
    const logprobs: unknown[] = [];
    let done: OpenAI.Audio.TranscriptionTextDoneEvent | undefined;
    for await (const event of stream) {
      assert.equal(done, undefined);
      if (event.type === 'transcript.text.delta') {
        text += event.delta;
        logprobs.push(...(event.logprobs ?? []));
      } else if (event.type === 'transcript.text.done') done = event;
    }
    assert.deepEqual([done?.text, done?.logprobs], [text, logprobs]);
    const { input_tokens = 0, output_tokens = 0, total_tokens } = done?.usage ?? {};
    assert.deepEqual([output_tokens, total_tokens], [logprobs.length, input_tokens + output_tokens]);
    const held = await client.audio.transcriptions.create({ model, file: await file(), include: ['logprobs'] });
    assert.deepEqual([held.text, held.logprobs], [text, logprobs]);
  });

  it('sandbox POST /v1/audio/transcriptions returns 400 naming the field at fault, and 413 for a file that is too large', async () => {
    const ask = async (fields: [string, string | Blob][]) => {
      const form = new FormData();
      for (const [name, value] of fields) form.append(name, value as string);
      const response = await fetch(`${sandbox.url}/v1/audio/transcriptions`, { method: 'POST', body: form });
      const { error } = (await response.json()) as { error: Record<string, unknown> };
      return { status: response.status, param: error.param, message: error.message };
    };
    const audio: [string, Blob] = ['file', new Blob([new Uint8Array(wav)])];
    const cases: [string, [string, string | Blob][]][] = [
      ['model', [audio]],
      ['file', [['model', model]]],
      [
        'file',
        [
          ['model', model],
          ['file', new Blob(['this is no audio at all'])],
        ],
      ],
      ['file', [['model', model], audio, audio]],
      ['language', [['model', model], audio, ['language', 'klingon']]],
      ['temperature', [['model', model], audio, ['temperature', '2']]],
      ['response_format', [['model', model], audio, ['response_format', 'diarized_json']]],
      ['response_format', [['model', model], audio, ['response_format', 'srt'], ['stream', 'true']]],
      ['timestamp_granularities', [['model', model], audio, ['timestamp_granularities[]', 'word']]],
      ['include', [['model', model], audio, ['include[]', 'words']]],
      ['include', [['model', model], audio, ['include[]', 'logprobs'], ['response_format', 'text']]],
      ['chunking_strategy', [['model', model], audio, ['chunking_strategy', 'none']]],
      ['chunking_strategy[type]', [['model', model], audio, ['chunking_strategy[type]', 'client_vad']]],
      ['known_speaker_names', [['model', model], audio, ['known_speaker_names[]', 'me']]],
    ];
    for (const [param, fields] of cases) {
      const { status, param: named } = await ask(fields);
      assert.deepEqual([status, named], [400, param]);
    }
    const text = await ask([
      ['model', model],
      ['file', new Blob(['this is no audio at all'])],
    ]);
    assert.match(String(text.message), /^Invalid file format\. Supported formats: \['flac', 'm4a', 'mp3'/);
    const full = await ask([
      ['model', model],
      ['file', new Blob([Buffer.alloc(25 * 1024 * 1024)])],
    ]);
    assert.deepEqual([full.status, full.message], [400, text.message]);
    const large = await ask([
      ['model', model],
      ['file', new Blob([Buffer.alloc(25 * 1024 * 1024 + 1)])],
    ]);
    assert.deepEqual([large.status, large.message], [413, 'Maximum content size limit (26214400) exceeded.']);
    const json = await fetch(`${sandbox.url}/v1/audio/transcriptions`, { method: 'POST', body: '{}' });
    assert.equal(json.status, 400);
  });

  it('sandbox POST /v1/audio/transcriptions applies faults, and writes one journal entry under the form field user', async () => {
    const ask = async (options: object, more: object = {}) =>
      client.audio.transcriptions.create({
        model,
        file: await file(),
        ...{ sandbox: JSON.stringify(options) },
        ...more,
      });
    await assert.rejects(ask({ fault: { kind: 'error', status: 500 } }), { status: 500 });
    await assert.rejects(ask({ fault: { kind: 'reset' } }), OpenAI.APIConnectionError);
    await assert.rejects(ask({ fault: { kind: 'malformed' } }));
    await assert.rejects(ask({ fault: { kind: 'eof' } }, { user: 'transcript' }));
    assert.deepEqual(
      (await journal('transcript')).map(({ fault, ended, model }) => [fault, ended, model]),
      [['eof', 'fault', model]],
    );
    const stream = (await ask({ fault: { kind: 'reset', after_tokens: 4 } }, { stream: true })) as unknown;
    let deltas = 0;
    await assert.rejects(async () => {
      for await (const _ of stream as AsyncIterable<unknown>) deltas += 1;
    });
    assert.equal(deltas, 4);
  });
});

describe('sandbox POST /v1/audio/translations', () => {
  it('sandbox POST /v1/audio/translations returns English, and 400 for a language', async () => {
    const translation = await client.audio.translations.create({ model, file: await file(mp4()), prompt: 'Boats' });
    assert.equal(
      translation.text,
      'Audio of 3.50 seconds, MP4, 44100 Hz, stereo. The sandbox translated this into English. The hint was: Boats',
    );
    const verbose = await client.audio.translations.create({
      model,
      file: await file(),
      response_format: 'verbose_json',
    });
    const { language, task } = verbose as unknown as Record<string, unknown>;
    assert.deepEqual([language, task], ['english', 'translate']);
    const form = new FormData();
    form.append('model', model);
    form.append('language', 'de');
    form.append('file', new Blob([new Uint8Array(wav)]));
    const refused = await fetch(`${sandbox.url}/v1/audio/translations`, { method: 'POST', body: form });
    assert.equal(refused.status, 400);
  });
});
