import type { Configuration } from '../support/gateway.ts';
import { type FixtureVendor, sendJson, startFixtureVendor } from '../vendors/contracts/fixture-vendor.ts';
import type { Sample } from './samples.ts';

/** Vendors whose wire is not OpenAI's: what callers send is taken apart for them, field by field. */
const wires = {
  chat: ['anthropic', 'gemini', 'bedrock', 'azure', 'mistral'],
  image: ['gemini', 'black-forest-labs', 'fal', 'replicate', 'stability'],
  video: ['gemini', 'fal', 'replicate', 'runway', 'luma', 'kling'],
  speech: ['elevenlabs', 'deepgram'],
  transcription: ['elevenlabs', 'deepgram', 'assemblyai'],
} as const;

type Wired = keyof typeof wires;

/** A vendor that refuses everything: whatever reaches it has been translated. */
export async function startRefusingVendor(): Promise<FixtureVendor> {
  const vendor = await startFixtureVendor();
  vendor.answer((response) => {
    vendor.requests.length = 0;
    sendJson(response, 400, '{"error":{"message":"It is refused.","type":"invalid_request_error","code":null}}');
  });
  return vendor;
}

/** The operator's file with every wire's vendor at that address, and a model of each. */
export function wiredConfiguration({ baseUrl }: FixtureVendor): Configuration {
  const names = [...new Set(Object.values(wires).flat())];
  const keyOf = (name: string): string => (name === 'kling' ? 'access:secret' : 'a-key');
  const vendors = names.map((name) => [name, { base_url: baseUrl, api_key: keyOf(name) }] as const);
  const models = Object.entries(wires).flatMap(([capability, those]) =>
    those.map((vendor) => [modelOf(capability, vendor), modelEntry(capability as Wired, vendor)] as const),
  );
  return {
    vendors: Object.fromEntries(vendors),
    models: Object.fromEntries(models),
    routing: { attempts: 1, breaker: { threshold_percent: 100, calls: 10_000 } },
  };
}

function modelOf(capability: string, vendor: string): string {
  return `fuzz-${capability}-${vendor}`;
}

function modelEntry(capability: Wired, vendor: string): NonNullable<Configuration['models']>[string] {
  const traits = {
    chat: { input: ['text' as const, 'image' as const], output: ['text' as const], reasoning: true },
    image: { image: { tasks: ['generation' as const, 'edit' as const], sizes: ['256x256'], most: 4 } },
    video: { video: { sizes: ['1280x720'], seconds: [4], input: true } },
    speech: { speech: { formats: ['mp3' as const, 'pcm' as const] } },
    transcription: { transcription: { timestamps: true, translates: true, streams: true, diarizes: true } },
  };
  const limits = capability === 'chat' ? { context_window: 100_000, max_output_tokens: 1000 } : {};
  return { capability, ...limits, ...traits[capability], routes: [{ vendor, model: 'a-model' }] };
}

const capabilityOfModel: Readonly<Record<string, Wired>> = {
  'sandbox-chat': 'chat',
  'sandbox-responses': 'chat',
  'sandbox-image': 'image',
  'sandbox-video': 'video',
  'sandbox-speech': 'speech',
  'sandbox-transcribe': 'transcription',
};

/** The samples that make jobs, once more for each wire that has their capability. */
export function wiredSamples(samples: readonly Sample[]): Sample[] {
  return samples
    .filter(({ route }) => route.startsWith('POST /v1/'))
    .flatMap((sample) => {
      const capability = capabilityOfModel[modelIn(sample) ?? ''];
      if (capability === undefined) return [];
      return wires[capability].map((vendor) => withModel(sample, modelOf(capability, vendor)));
    });
}

function modelIn({ json, form }: Sample): string | undefined {
  return (json as { model?: string } | undefined)?.model ?? form?.find(({ name }) => name === 'model')?.value;
}

function withModel(sample: Sample, model: string): Sample {
  const { json, form } = sample;
  return {
    ...sample,
    ...(json !== undefined && { json: { ...(json as object), model } }),
    ...(form !== undefined && { form: form.map((part) => (part.name === 'model' ? { ...part, value: model } : part)) }),
  };
}
