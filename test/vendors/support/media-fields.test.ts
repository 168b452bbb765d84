import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { z } from 'zod';
import type { embeddingRequest } from '../../../shared/capabilities/embedding.ts';
import type { imageEditRequest, imageGenerationRequest } from '../../../shared/capabilities/image.ts';
import type { speechRequest } from '../../../shared/capabilities/speech.ts';
import type { transcriptionRequest } from '../../../shared/capabilities/transcription.ts';
import type { videoRequest } from '../../../shared/capabilities/video-request.ts';
import {
  callersName,
  givenMediaFields,
  type MediaCapability,
  withoutMediaFields,
} from '../../../shared/catalogue/media-fields.ts';
import { ApiError } from '../../../shared/errors.ts';
import { mediaFieldSupport } from '../../../shared/vendors/field-support.ts';
import type { FieldSupport } from '../../../shared/vendors/vendor-description.ts';
import { vendorRows } from '../../../shared/vendors/vendors.ts';
import { createVendor } from '../../../workers/vendors/registry.ts';
import type { Vendor } from '../../../workers/vendors/vendor.ts';
import { vendorSettings } from '../../support/vendor-settings.ts';
import { audio } from '../contracts/audio-vendor-contract.ts';
import {
  callOf,
  collect,
  type FixtureVendor,
  type ReceivedRequest,
  sendJson,
  startFixtureVendor,
} from '../contracts/fixture-vendor.ts';
import { png } from '../contracts/image-vendor-contract.ts';
import { memoryFiles } from '../contracts/memory-files.ts';

type Fields = Readonly<Record<string, unknown>>;
type Known<Schema extends z.ZodType> = keyof {
  [Name in keyof z.infer<Schema> as string extends Name ? never : Name]: unknown;
};

/** What every vendor is asked for, or the gateway does itself, or the model's row says. */
type Always = 'model' | 'stream' | 'prompt' | 'input' | 'response_format';

/** Fields of each capability: every one of its schema, of each kind, and one that is the vendor's own. */
interface FieldsOf {
  image: Exclude<Known<typeof imageGenerationRequest> | Known<typeof imageEditRequest>, Always | 'images'> | 'own';
  embedding: Exclude<Known<typeof embeddingRequest>, Always | 'encoding_format'> | 'own';
  transcription:
    | Exclude<Known<typeof transcriptionRequest>, Exclude<Always, 'prompt'>>
    | 'languages.several'
    | 'prompt.beside_keywords'
    | 'own';
  speech: Exclude<Known<typeof speechRequest>, Always | 'stream_format'> | 'voice.openai' | 'own';
  video: Exclude<Known<typeof videoRequest>, Always | 'size' | 'seconds' | 'input_reference'> | 'user' | 'own';
}
type Support<Capability extends MediaCapability> = Readonly<Record<FieldsOf[Capability], FieldSupport>>;

const reference = { image_url: `data:image/png;base64,${png.toString('base64')}` };

/** A value of each field that asks for something. A job has these besides: `base` in the same places. */
const values: { readonly [Capability in MediaCapability]: Readonly<Record<FieldsOf[Capability], unknown>> } = {
  image: {
    n: 2,
    size: '1024x1024',
    user: 'u-1',
    background: 'transparent',
    moderation: 'low',
    output_format: 'jpeg',
    output_compression: 50,
    partial_images: 2,
    quality: 'high',
    style: 'natural',
    input_fidelity: 'high',
    mask: reference,
    own: 7,
  },
  embedding: { dimensions: 8, user: 'u-1', own: 7 },
  transcription: {
    language: 'de',
    languages: ['de'],
    'languages.several': ['de', 'en'],
    keywords: ['Sluice'],
    prompt: 'A talk about water.',
    'prompt.beside_keywords': 'A talk about water.',
    temperature: 0.5,
    timestamp_granularities: ['word'],
    chunking_strategy: 'server_vad',
    include: ['logprobs'],
    known_speaker_names: ['Ann'],
    known_speaker_references: ['data:audio/wav;base64,AAAA'],
    own: 'x7',
  },
  speech: { voice: 'thalia', 'voice.openai': 'alloy', instructions: 'Whisper.', speed: 1.5, own: 7 },
  video: { user: 'u-1', own: 7 },
};

/** Fields that stand beside one, because it means nothing without them. */
const beside: Readonly<Record<string, Fields>> = {
  'prompt.beside_keywords': { keywords: ['Sluice'] },
  output_compression: { output_format: 'jpeg' },
};

/** What is timed is chosen of the answer, where a vendor times everything anyhow. */
const chosenLater = new Set(['timestamp_granularities']);

const kept = <Capability extends MediaCapability>(capability: Capability): Support<Capability> =>
  Object.fromEntries(Object.keys(values[capability]).map((name) => [name, 'native'])) as Support<Capability>;

/** What vendors make of images that have no more than a prompt, a size and a format. */
const paintings: Support<'image'> = {
  n: 'rejected',
  size: 'translated',
  user: 'ignored',
  background: 'rejected',
  moderation: 'rejected',
  output_format: 'native',
  output_compression: 'rejected',
  partial_images: 'rejected',
  quality: 'rejected',
  style: 'rejected',
  input_fidelity: 'rejected',
  mask: 'rejected',
  own: 'native',
};
const transcripts: Support<'transcription'> = {
  language: 'translated',
  languages: 'translated',
  'languages.several': 'translated',
  keywords: 'translated',
  prompt: 'ignored',
  'prompt.beside_keywords': 'ignored',
  temperature: 'ignored',
  timestamp_granularities: 'translated',
  chunking_strategy: 'ignored',
  include: 'rejected',
  known_speaker_names: 'rejected',
  known_speaker_references: 'rejected',
  own: 'native',
};
const films: Support<'video'> = { user: 'ignored', own: 'native' };

interface Row {
  readonly vendor: string;
  readonly model: string;
  readonly capability: MediaCapability;
  readonly support: Readonly<Record<string, FieldSupport>>;
}

const row = <Capability extends MediaCapability>(
  vendor: string,
  capability: Capability,
  model: string,
  support: Support<Capability>,
): Row => ({ vendor, capability, model, support });

/** The table: vendor × field. */
const table: readonly Row[] = [
  ...['openai', 'azure'].flatMap((vendor) => [
    row(vendor, 'image', 'gpt-image-2', kept('image')),
    row(vendor, 'embedding', 'text-embedding-3-small', kept('embedding')),
    row(vendor, 'transcription', 'whisper-1', kept('transcription')),
    row(vendor, 'speech', 'tts-1', kept('speech')),
    row(vendor, 'video', 'sora-2', kept('video')),
  ]),
  row('black-forest-labs', 'image', 'flux-2-max', paintings),
  row('fal', 'image', 'fal-ai/flux/dev', { ...paintings, n: 'translated' }),
  row('fal', 'video', 'fal-ai/veo3/fast', films),
  row('replicate', 'image', 'black-forest-labs/flux-dev', {
    ...{ ...paintings, n: 'translated', output_format: 'translated', output_compression: 'translated' },
  }),
  row('replicate', 'video', 'google/veo-3-fast', films),
  row('gemini', 'image', 'gemini-2.5-flash-image', { ...paintings, output_format: 'rejected', own: 'rejected' }),
  row('gemini', 'image', 'imagen-4.0-generate-001', {
    ...{ ...paintings, n: 'translated', output_format: 'translated', output_compression: 'translated' },
  }),
  row('gemini', 'embedding', 'gemini-embedding-001', { dimensions: 'translated', user: 'ignored', own: 'rejected' }),
  row('gemini', 'video', 'veo-3.1-generate-preview', films),
  row('stability', 'image', 'stable-image-ultra', paintings),
  row('stability', 'image', 'sd3.5-large', paintings),
  row('luma', 'image', 'photon-1', { ...paintings, output_format: 'translated' }),
  row('luma', 'video', 'ray-2', films),
  row('runway', 'video', 'gen4.5', films),
  row('kling', 'video', 'kling-v3', films),
  row('deepgram', 'transcription', 'nova-3', transcripts),
  row('deepgram', 'speech', 'aura-2-thalia-en', {
    ...{ voice: 'translated', 'voice.openai': 'ignored', instructions: 'rejected', speed: 'native', own: 'native' },
  }),
  row('elevenlabs', 'transcription', 'scribe_v2', {
    ...{ ...transcripts, 'languages.several': 'ignored', temperature: 'native' },
  }),
  row('elevenlabs', 'speech', 'eleven_v3', {
    // A voice of OpenAI's is refused by the adapter, whatever the key says: it cannot speak without one of its own.
    ...{
      voice: 'translated',
      'voice.openai': 'translated',
      instructions: 'rejected',
      speed: 'translated',
      own: 'native',
    },
  }),
  row('assemblyai', 'transcription', 'universal-3-5-pro', { ...transcripts, prompt: 'native', temperature: 'native' }),
  row('assemblyai', 'transcription', 'universal-2', transcripts),
];

/** Jobs as the api makes them, with some fields in their places. */
function jobOf(capability: MediaCapability, fields: Fields): Fields {
  switch (capability) {
    case 'image': {
      const { mask = null, ...parameters } = fields;
      return {
        ...{ task: mask === null ? 'generation' : 'edit', response_format: null, takes_response_format: true },
        ...{ images: mask === null ? [] : [reference], mask, parameters: { prompt: 'A lighthouse', ...parameters } },
      };
    }
    case 'embedding':
      return { input: 'Hello', ...fields };
    case 'transcription': {
      const file = { file: 'a-file', name: 'say.wav', type: 'audio/wav', bytes: audio.length };
      return { task: 'transcribe', format: 'verbose_json', file, options: fields };
    }
    case 'speech':
      return { input: 'Hello', voice: 'thalia', response_format: 'mp3', ...fields };
    case 'video':
      return { prompt: 'A cat', size: '1280x720', seconds: '8', input: null, remixed: null, parameters: fields };
  }
}

/** The name of a field on the wire: `own` is one that no vendor's adapter knows. */
const wireName = (field: string): string => (field === 'own' ? 'x_own' : callersName(field));

/** The fields of a request that a vendor got, wherever they stand in its query, form or JSON. */
async function fieldsIn({ url = '', headers, body }: ReceivedRequest): Promise<Map<string, unknown>> {
  const found = new Map<string, unknown>();
  const add = (name: string, value: unknown): void => {
    found.set(name, found.has(name) ? [found.get(name), value].flat() : value);
  };
  const { pathname, searchParams } = new URL(url, 'http://host');
  add('the path', pathname);
  for (const [name, value] of searchParams) add(name, value);
  const type = String(headers['content-type']);
  if (type.startsWith('multipart/')) {
    const form = await new Response(body, { headers: { 'content-type': type } }).formData();
    for (const [name, value] of form) add(name.replace('[]', ''), typeof value === 'string' ? value : 'a file');
  } else if (type.startsWith('application/json')) {
    const walk = (value: unknown): void => {
      if (typeof value !== 'object' || value === null) return;
      for (const [name, inner] of Object.entries(value)) {
        if (!Array.isArray(value)) add(name, inner);
        walk(inner);
      }
    };
    walk(JSON.parse(body));
  }
  return found;
}

/** A list in a form or a query is as many fields of one name: of one item it is that item. */
const onWire = (value: unknown): unknown => (Array.isArray(value) && value.length === 1 ? value[0] : value);

/** What is sent as text and as a number is the same to whoever reads a form or a query. */
const asText = (value: unknown): unknown => (typeof value === 'object' ? value : String(value));

describe('field support of media requests', () => {
  let server: FixtureVendor;
  before(async () => {
    server = await startFixtureVendor();
    // What matters is what was sent: how a vendor answers has suites of its own.
    server.answer((response, { url = '' }) => {
      if (url.endsWith('/upload')) sendJson(response, 200, JSON.stringify({ upload_url: 'https://cdn.example/a' }));
      else sendJson(response, 400, '{"error":{"message":"Enough."}}');
    });
  });
  after(() => server.close());

  const make = (vendor: Vendor, { capability, model }: Row, fields: Fields): Promise<unknown> => {
    const { files } = memoryFiles({ 'a-file': Buffer.from(audio) });
    const request = JSON.stringify(jobOf(capability, fields));
    const call = callOf({ model, stream: capability === 'speech', request, files });
    const methods = { image: 'image', embedding: 'embed', transcription: 'transcribe', speech: 'speak' } as const;
    if (capability === 'video') return vendor.video?.create(call) ?? Promise.reject(new Error('no videos'));
    return vendor[methods[capability]]?.(call, collect()) ?? Promise.reject(new Error(`no ${capability}`));
  };

  /** What a vendor gets of a job, or the error of one that is refused before. */
  const sent = async (vendor: Vendor, tested: Row, fields: Fields) => {
    server.requests.length = 0;
    const error = await make(vendor, tested, fields).catch((thrown: unknown) => thrown);
    const [last] = server.requests.slice(-1);
    if (last !== undefined) return await fieldsIn(last);
    assert.ok(error instanceof ApiError, String(error));
    return error;
  };

  for (const tested of table) {
    const { vendor: name, capability, model, support: expected } = tested;
    it(`${capability} fields of ${name}'s ${model} have the support of the table and of the adapter`, async () => {
      const settings = vendorSettings(name, server.baseUrl, 'a-key:with-a-secret-0123456789');
      const vendor = createVendor(name, settings, 'a-key:with-a-secret-0123456789');
      const fields: Fields = values[capability];
      for (const [field, support] of Object.entries(expected) as [string, FieldSupport][]) {
        const others = expected.output_format === 'rejected' ? {} : beside[field];
        const given = { ...others, [wireName(field)]: fields[field] };
        const looked = givenMediaFields(capability, jobOf(capability, given)).filter((each) => each !== 'voice');
        const found = field === 'own' ? 'x_own' : field;
        assert.ok(field === 'voice' || looked.includes(found), `${field} is given: ${looked}`);
        const target = { row: settings.row, capability, model };
        assert.equal(mediaFieldSupport(target, found), support, `${name}: ${field}`);
        const base = await sent(vendor, tested, { ...others, ...(field === 'mask' && { mask: reference }) });
        const arrived = await sent(vendor, tested, given);
        const about = `${name}: ${field} is ${support}`;
        if (support === 'rejected') {
          assert.ok(arrived instanceof ApiError, about);
          assert.deepEqual([arrived.code, arrived.param], ['invalid_request_error', wireName(field)], about);
          continue;
        }
        if (name === 'elevenlabs' && field === 'voice.openai') {
          assert.ok(arrived instanceof ApiError && arrived.param === 'voice');
          continue;
        }
        assert.ok(arrived instanceof Map && (field === 'mask' || base instanceof Map), `${about}: ${String(arrived)}`);
        if (support === 'native')
          assert.deepEqual(asText(arrived.get(wireName(field))), asText(onWire(fields[field])), about);
        else if (support === 'ignored') assert.deepEqual(arrived, base, about);
        else if (field !== 'voice' && !chosenLater.has(field)) assert.notDeepEqual(arrived, base, about);
      }
      await vendor.close();
    });
  }

  it('the table has every media capability that a vendor with a wire of its own offers', async () => {
    const methods = {
      image: 'image',
      embed: 'embedding',
      transcribe: 'transcription',
      speak: 'speech',
      video: 'video',
    };
    for (const { name, dialect } of vendorRows) {
      if (dialect === 'openai') continue;
      const vendor = createVendor(name, vendorSettings(name), 'a-key:with-a-secret-0123456789');
      for (const [method, capability] of Object.entries(methods)) {
        if (!(method in vendor)) continue;
        assert.ok(
          table.some((tested) => tested.vendor === name && tested.capability === capability),
          `${name} ${capability}`,
        );
      }
      await vendor.close();
    }
  });

  it('givenMediaFields omits fields with default values', () => {
    const image = {
      n: 1,
      size: 'auto',
      quality: 'standard',
      output_format: 'png',
      output_compression: 100,
      user: null,
    };
    assert.deepEqual(givenMediaFields('image', jobOf('image', { ...image, background: 'auto' })), []);
    const heard = { temperature: 0, prompt: '', include: [], chunking_strategy: 'auto' };
    assert.deepEqual(givenMediaFields('transcription', jobOf('transcription', heard)), []);
    assert.deepEqual(givenMediaFields('speech', jobOf('speech', { speed: 1, instructions: '' })), ['voice']);
    assert.deepEqual(givenMediaFields('embedding', { input: ['a'], encoding_format: 'base64' }), []);
    assert.deepEqual(givenMediaFields('image', jobOf('image', { constructor: 1 })), ['constructor']);
  });

  it('withoutMediaFields removes fields by their names, wherever a job has them', () => {
    const left = withoutMediaFields('image', jobOf('image', { mask: reference, n: 2, seed: 7 }), ['mask', 'n']);
    assert.deepEqual(left, { ...jobOf('image', { mask: reference, seed: 7 }), mask: null });
    const options = { 'chunking_strategy[type]': 'server_vad', languages: ['de', 'en'], language: 'de' };
    const heard = withoutMediaFields('transcription', jobOf('transcription', options), [
      'chunking_strategy',
      'languages.several',
    ]);
    assert.deepEqual(heard, jobOf('transcription', { language: 'de' }));
    assert.deepEqual(withoutMediaFields('embedding', { input: 'a', user: 'u' }, ['user']), { input: 'a' });
  });
});
