import type { Capability } from '../capabilities/capability.ts';
import { isOpenAiVoice } from '../capabilities/speech.ts';

/** Capabilities other than chat, whose jobs hold their callers' fields apart from what every vendor is asked for. */
export type MediaCapability = Exclude<Capability, 'chat'>;

type Fields = Readonly<Record<string, unknown>>;

/** Values by which OpenAI's fields ask for nothing that another vendor would not do anyhow. */
export const mediaDefaults: Readonly<Record<MediaCapability, Readonly<Record<string, readonly unknown[]>>>> = {
  image: {
    n: [1],
    size: ['auto'],
    background: ['auto', 'opaque'],
    moderation: ['auto'],
    quality: ['auto', 'standard'],
    style: ['vivid'],
    input_fidelity: ['low'],
    output_format: ['png'],
    output_compression: [100],
    partial_images: [0],
  },
  embedding: {},
  transcription: { chunking_strategy: ['auto'], temperature: [0] },
  speech: { speed: [1] },
  video: {},
};

/** Where a job holds its caller's fields; left out: they are its own. */
const places: Partial<Record<MediaCapability, string>> = {
  image: 'parameters',
  transcription: 'options',
  video: 'parameters',
};

/** What every vendor is asked for, or the gateway does itself, or the model's row says. */
const always: Readonly<Record<MediaCapability, ReadonlySet<string>>> = {
  image: new Set(['prompt']),
  embedding: new Set(['input', 'encoding_format']),
  transcription: new Set(),
  speech: new Set(['input', 'response_format', 'stream_format']),
  video: new Set(),
};

/**
 * Names of the fields by which a job asks its vendor for anything: those with other values than OpenAI's defaults. Values of
 * a kind of their own have it behind the name: `voice.openai` is a voice of OpenAI's, `languages.several` more than one,
 * `prompt.beside_keywords` a transcript's prompt where there are keywords, too.
 */
export function givenMediaFields(capability: MediaCapability, job: Fields): string[] {
  const place = places[capability];
  const fields = place === undefined ? job : (job[place] as Fields);
  const given = Object.keys(fields).filter(
    (name) => !always[capability].has(name) && !asksForNothing(capability, name, fields[name]),
  );
  const named = given.map((name) => withKind(capability, name, fields));
  return [...new Set(job.mask == null || capability !== 'image' ? named : [...named, 'mask'])];
}

/** A job without some of its fields, by the names that `givenMediaFields` has. */
export function withoutMediaFields(capability: MediaCapability, job: Fields, names: readonly string[]): Fields {
  const place = places[capability];
  const fields = place === undefined ? job : (job[place] as Fields);
  const left = new Set(names);
  const kept = Object.entries(fields).filter(([name]) => !left.has(withKind(capability, name, fields)));
  if (place === undefined) return Object.fromEntries(kept);
  return { ...job, ...(left.has('mask') && { mask: null }), [place]: Object.fromEntries(kept) };
}

/** What a caller calls a field. */
export function callersName(field: string): string {
  return field.replace(/^(voice|languages|prompt)\..*$/s, '$1');
}

function asksForNothing(capability: MediaCapability, name: string, value: unknown): boolean {
  if (value === null || value === undefined || value === '') return true;
  if (Array.isArray(value) && value.length === 0) return true;
  const defaults = mediaDefaults[capability];
  return Object.hasOwn(defaults, name) && defaults[name]?.includes(value) === true;
}

function withKind(capability: MediaCapability, name: string, fields: Fields): string {
  const value = fields[name];
  if (capability === 'transcription') {
    if (name === 'languages' && Array.isArray(value) && value.length > 1) return 'languages.several';
    const { keywords } = fields;
    if (name === 'prompt' && Array.isArray(keywords) && keywords.length > 0) return 'prompt.beside_keywords';
    // A form says a strategy of one's own field by field: `chunking_strategy[type]`.
    return name.startsWith('chunking_strategy[') ? 'chunking_strategy' : name;
  }
  return capability === 'speech' && name === 'voice' && isOpenAiVoice(value) ? 'voice.openai' : name;
}
