import type { Capability } from '../capabilities/capability.ts';
import { isOpenAiVoice } from '../capabilities/speech.ts';

/** Capabilities other than chat, whose jobs keep their callers' fields apart from those sent to every vendor. */
export type MediaCapability = Exclude<Capability, 'chat'>;

type Fields = Readonly<Record<string, unknown>>;

/** Values of OpenAI's fields that request nothing beyond the default behaviour of other vendors. */
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

/** The field in which a job keeps its caller's fields; left out: the job itself. */
const holders: Partial<Record<MediaCapability, string>> = {
  image: 'parameters',
  transcription: 'options',
  video: 'parameters',
};

/** Fields sent to every vendor, handled by the gateway, or determined by the model's row. */
const always: Readonly<Record<MediaCapability, ReadonlySet<string>>> = {
  image: new Set(['prompt']),
  embedding: new Set(['input', 'encoding_format']),
  transcription: new Set(),
  speech: new Set(['input', 'response_format', 'stream_format']),
  video: new Set(),
};

/**
 * Names of the fields by which a job asks its vendor for anything: those with values other than OpenAI's defaults. Special
 * kinds of values are appended to the name: `voice.openai` is one of OpenAI's voices, `languages.several` more than one,
 * `prompt.beside_keywords` a transcript's prompt in addition to keywords.
 */
export function givenMediaFields(capability: MediaCapability, job: Fields): string[] {
  const holder = holders[capability];
  const fields = holder === undefined ? job : (job[holder] as Fields);
  const given = Object.keys(fields).filter(
    (name) => !always[capability].has(name) && !asksForNothing(capability, name, fields[name]),
  );
  const named = given.map((name) => withKind(capability, name, fields));
  return [...new Set(job.mask == null || capability !== 'image' ? named : [...named, 'mask'])];
}

/** Removes fields from a job, by the names that `givenMediaFields` returns. */
export function withoutMediaFields(capability: MediaCapability, job: Fields, names: readonly string[]): Fields {
  const holder = holders[capability];
  const fields = holder === undefined ? job : (job[holder] as Fields);
  const removed = new Set(names);
  const kept = Object.entries(fields).filter(([name]) => !removed.has(withKind(capability, name, fields)));
  if (holder === undefined) return Object.fromEntries(kept);
  return { ...job, ...(removed.has('mask') && { mask: null }), [holder]: Object.fromEntries(kept) };
}

/** The caller's name of a field. */
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
    // A form sends a custom strategy field by field: `chunking_strategy[type]`.
    return name.startsWith('chunking_strategy[') ? 'chunking_strategy' : name;
  }
  return capability === 'speech' && name === 'voice' && isOpenAiVoice(value) ? 'voice.openai' : name;
}
