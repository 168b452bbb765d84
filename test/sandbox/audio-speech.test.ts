import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { after, before, describe, it } from 'node:test';
import createFlac from 'libflacjs';
import { MPEGDecoder } from 'mpg123-decoder';
import OpenAI from 'openai';
import { type RunningSandbox, startSandbox } from '../../sandbox/server.ts';
import { type JournalEntry, vendorCalls } from '../support/vendor-journal.ts';

let sandbox: RunningSandbox;
let client: OpenAI;
before(async () => {
  sandbox = await startSandbox({ journal: true });
  client = new OpenAI({ apiKey: 'none', baseURL: `${sandbox.url}/v1`, maxRetries: 0 });
});
after(() => sandbox.close());

const input = 'Peter Piper says: 42 zebras sing, hum & whistle. Über Füchse? 北京!';
const good = { model: 'sandbox-speech', voice: 'alloy', input };

async function say(more: object = {}): Promise<Buffer> {
  const answer = await client.audio.speech.create({ ...good, ...more });
  return Buffer.from(await answer.arrayBuffer());
}

/** Root mean square; 1 is the loudest there can be. */
function loudness(samples: Float32Array): number {
  return Math.sqrt(samples.reduce((sum, sample) => sum + sample * sample, 0) / samples.length);
}

function samplesOf(pcm: Buffer): Float32Array {
  return Float32Array.from({ length: pcm.length / 2 }, (_, index) => pcm.readInt16LE(index * 2) / 32_768);
}

/** Decodes with libFLAC itself, which checks every CRC and, at the end, the hash of all samples. */
async function decodeFlac(encoded: Buffer) {
  const file = new Uint8Array(encoded);
  const flac = createFlac();
  if (!flac.isReady()) await new Promise((resolve) => flac.on('ready', resolve));
  const decoder = flac.create_libflac_decoder(true);
  const blocks: Buffer[] = [];
  const errors: number[] = [];
  let [position, rate, channels, bits] = [0, 0, 0, 0];
  flac.init_decoder_stream(
    decoder,
    (size) => {
      const buffer = file.subarray(position, position + size);
      position += buffer.length;
      return { buffer, readDataLength: buffer.length, error: false };
    },
    ([block]) => blocks.push(Buffer.from(block as Uint8Array)),
    (code) => errors.push(code),
    (about) => {
      [rate, channels, bits] = [about?.sampleRate ?? 0, about?.channels ?? 0, about?.bitsPerSample ?? 0];
    },
    false,
  );
  const isDecoded = flac.FLAC__stream_decoder_process_until_end_of_stream(decoder);
  const isIntact = Boolean(flac.FLAC__stream_decoder_finish(decoder) && isDecoded && errors.length === 0);
  flac.FLAC__stream_decoder_delete(decoder);
  return { rate, channels, bits, isIntact, pcm: Buffer.concat(blocks) };
}

/** How often the sound swings through zero in a second. */
function crossings(samples: Float32Array): number {
  let count = 0;
  for (let index = 1; index < samples.length; index += 1) {
    if ((samples[index] as number) >= 0 !== (samples[index - 1] as number) >= 0) count += 1;
  }
  return (count * 24_000) / samples.length;
}

async function events(more: object = {}): Promise<{ type: string; audio?: string; usage?: Record<string, number> }[]> {
  const answer = await client.audio.speech.create({ ...good, stream_format: 'sse', ...more });
  assert.match(answer.headers.get('content-type') ?? '', /^text\/event-stream/);
  return (await answer.text())
    .split('\n\n')
    .filter(Boolean)
    .map((event) => JSON.parse(event.replace(/^data: /, '')));
}

const journal = (testId: string): Promise<JournalEntry[]> => vendorCalls({ sandbox }, testId);

describe('sandbox POST /v1/audio/speech', () => {
  it('sandbox POST /v1/audio/speech returns audible 24 kHz audio, constant per request and different by voice or instruction', async () => {
    const pcm = await say({ response_format: 'pcm' });
    assert.ok(loudness(samplesOf(pcm)) > 0.02);
    assert.deepEqual(await say({ response_format: 'pcm' }), pcm);
    const onyx = await say({ response_format: 'pcm', voice: 'onyx' });
    assert.equal(onyx.length, pcm.length);
    assert.notDeepEqual(onyx, pcm);
    assert.notDeepEqual(await say({ response_format: 'pcm', instructions: 'Sing.' }), pcm);
    assert.notDeepEqual(await say({ response_format: 'pcm', voice: { id: 'voice_1' } }), pcm);
    const hiss = samplesOf(await say({ response_format: 'pcm', input: 'ssss' }));
    const hum = samplesOf(await say({ response_format: 'pcm', input: 'oooo' }));
    assert.ok(crossings(hiss) > 2 * crossings(hum));
  });

  it('sandbox POST /v1/audio/speech speaks longer for a longer text and a lower speed', async () => {
    const lengthOf = async (more: object) => (await say({ response_format: 'pcm', ...more })).length;
    const normal = await lengthOf({});
    assert.ok((await lengthOf({ input: `${input} ${input}` })) > 2 * normal);
    assert.ok(Math.abs((await lengthOf({ speed: 0.5 })) / normal - 2) < 0.01);
    assert.ok(Math.abs((await lengthOf({ speed: 4 })) / normal - 0.25) < 0.01);
  });

  it('sandbox POST /v1/audio/speech returns WAV and FLAC with exactly the samples of the PCM', async () => {
    const pcm = await say({ response_format: 'pcm' });
    const wav = await say({ response_format: 'wav' });
    assert.deepEqual(wav.subarray(44), pcm);
    assert.equal(wav.readUInt32LE(40), pcm.length);
    assert.equal(wav.readUInt32LE(4), wav.length - 8);
    const flac = await say({ response_format: 'flac' });
    assert.deepEqual(flac.subarray(26, 42), createHash('md5').update(pcm).digest());
    assert.ok(flac.length < pcm.length);
    assert.deepEqual(await decodeFlac(flac), { rate: 24_000, channels: 1, bits: 16, isIntact: true, pcm });
  });

  it('sandbox POST /v1/audio/speech returns MP3 by default, as long and as loud as the PCM', async () => {
    const answer = await client.audio.speech.create(good);
    assert.equal(answer.headers.get('content-type'), 'audio/mpeg');
    const decoder = new MPEGDecoder();
    await decoder.ready;
    const decoded = decoder.decode(new Uint8Array(await answer.arrayBuffer()));
    decoder.free();
    const pcm = samplesOf(await say({ response_format: 'pcm' }));
    assert.deepEqual([decoded.errors, decoded.sampleRate], [[], 24_000]);
    assert.ok(Math.abs(decoded.samplesDecoded - pcm.length) < 3000, `${decoded.samplesDecoded} of ${pcm.length}`);
    const ratio = loudness(decoded.channelData[0] as Float32Array) / loudness(pcm);
    assert.ok(ratio > 0.8 && ratio < 1.2, `${ratio}`);
  });

  it('sandbox POST /v1/audio/speech streams the same bytes as SSE events, with usage at the end', async () => {
    for (const response_format of ['mp3', 'wav', 'flac', 'pcm']) {
      const all = await events({ response_format });
      const last = all.pop();
      assert.ok(all.length > 5 && all.every(({ type }) => type === 'speech.audio.delta'));
      const audio = Buffer.concat(all.map((event) => Buffer.from(event.audio ?? '', 'base64')));
      assert.deepEqual(audio, await say({ response_format }));
      assert.equal(last?.type, 'speech.audio.done');
      const { input_tokens, output_tokens, total_tokens } = last?.usage ?? {};
      assert.ok(input_tokens && output_tokens && total_tokens === input_tokens + output_tokens);
    }
  });

  it('sandbox POST /v1/audio/speech returns 400 naming the parameter at fault', async () => {
    const cases: [string | null, object][] = [
      ['model', { model: undefined }],
      ['input', { input: undefined }],
      ['input', { input: '' }],
      ['input', { input: 'x'.repeat(4097) }],
      ['voice', { voice: undefined }],
      ['voice', { voice: 'nobody' }],
      ['voice', { voice: { name: 'alloy' } }],
      ['instructions', { instructions: 5 }],
      ['response_format', { response_format: 'ogg' }],
      ['response_format', { response_format: 'opus' }],
      ['response_format', { response_format: 'aac' }],
      ['speed', { speed: 0.2 }],
      ['speed', { speed: 4.1 }],
      ['stream_format', { stream_format: 'chunks' }],
      ['stream', { stream: true }],
      ['sandbox.fault.kind', { sandbox: { fault: { kind: 'malformed' } } }],
    ];
    for (const [param, more] of cases) {
      const body = JSON.stringify({ ...good, ...more });
      const answer = await fetch(`${sandbox.url}/v1/audio/speech`, { method: 'POST', body });
      const { error } = (await answer.json()) as { error: Record<string, unknown> };
      assert.deepEqual([answer.status, error.param, error.type], [400, param, 'invalid_request_error']);
    }
    const emoji = await say({ input: '🦊'.repeat(4096), speed: 4, response_format: 'pcm' });
    assert.ok(emoji.length > 0);
  });
});

describe('speed and faults of sandbox speech', () => {
  it('sandbox POST /v1/audio/speech fails with the requested fault, before the first byte and after some pieces', async () => {
    const fails = (fault: object, more: object = {}) => say({ sandbox: { fault }, ...more });
    await assert.rejects(fails({ kind: 'error', status: 500 }), { status: 500 });
    await assert.rejects(fails({ kind: 'rate_limit' }), { status: 429 });
    await assert.rejects(fails({ kind: 'reset' }), OpenAI.APIConnectionError);
    await assert.rejects(fails({ kind: 'reset', after_tokens: 3 }, { user: 'speech-reset' }));
    await assert.rejects(fails({ kind: 'eof', after_tokens: 3 }));
    const [entry, ...others] = await journal('speech-reset');
    assert.deepEqual([entry?.fault, entry?.ended, entry?.tokens, others], ['reset', 'fault', 3, []]);
    const failed = await events({ sandbox: { fault: { kind: 'error', after_tokens: 2 } } });
    assert.deepEqual(
      failed.map((event) => event.type ?? Object.keys(event)[0]),
      ['speech.audio.delta', 'speech.audio.delta', 'error'],
    );
  });

  it('sandbox POST /v1/audio/speech paces its pieces, writes them in small parts, and reads the test id from a header', async () => {
    const options = { sandbox: { tokens_per_second: 1000, fault: { kind: 'slow_bytes' } }, input: 'Hi' };
    const whole = await say({ input: 'Hi', response_format: 'flac' });
    const answer = await client.audio.speech.create(
      { ...good, ...options, response_format: 'flac' },
      { headers: { 'x-sandbox-test-id': 'by-header' } },
    );
    assert.deepEqual(Buffer.from(await answer.arrayBuffer()), whole);
    assert.deepEqual(
      (await journal('by-header')).map(({ model, fault, ended }) => [model, fault, ended]),
      [['sandbox-speech', 'slow_bytes', 'completed']],
    );
  });
});
