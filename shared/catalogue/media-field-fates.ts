import { type ChatFieldFates, type FieldFate, fateOf } from './chat-fields.ts';
import type { MediaCapability } from './media-fields.ts';
import type { Dialect } from './vendors.ts';

/** Fates of a capability's fields at one dialect; a function where they depend on the model, by its vendor's name. */
type MediaFates = ChatFieldFates | ((model: string) => ChatFieldFates);

/** What readImageRequest (workers/vendors/image-request.ts) does for every vendor that reads its images by it. */
const images: ChatFieldFates = {
  user: 'dropped',
  size: 'mapped',
  mask: 'refused',
  background: 'refused',
  moderation: 'refused',
  quality: 'refused',
  style: 'refused',
  input_fidelity: 'refused',
  partial_images: 'refused',
};

/** What readTranscriptionRequest (workers/vendors/transcription-request.ts) does. */
const transcriptions: ChatFieldFates = {
  language: 'mapped',
  languages: 'mapped',
  keywords: 'mapped',
  timestamp_granularities: 'mapped',
  chunking_strategy: 'dropped',
  include: 'refused',
  known_speaker_names: 'refused',
  known_speaker_references: 'refused',
};

/** What readSpeechRequest (workers/vendors/speech-request.ts) does. */
const speeches: ChatFieldFates = { instructions: 'refused', voice: 'mapped' };

/**
 * What readVideoRequest (workers/vendors/video-request.ts) does: other fields are the vendor's own.
 * @param said what the vendor calls a video's size and length, which every job has already
 */
function videos(...said: readonly string[]): ChatFieldFates {
  return { user: 'dropped', ...Object.fromEntries(said.map((name) => [name, 'refused'])) };
}

/**
 * What becomes of the fields of requests other than chats, wherever a vendor does not speak OpenAI's wire: the one place
 * where an adapter that translates says so. A field without an entry has the fate of `*`, or is kept. The fields of a
 * vendor's own that its adapter does not let through (a webhook, say) are refused there.
 */
const fates: Partial<Record<Dialect, Partial<Record<MediaCapability, MediaFates>>>> = {
  assemblyai: {
    transcription: (model) => {
      const isPromptable = model.startsWith('universal-3');
      return {
        ...transcriptions,
        prompt: isPromptable ? 'kept' : 'dropped',
        // One excludes the other there.
        'prompt.beside_keywords': 'dropped',
        temperature: isPromptable ? 'kept' : 'dropped',
      };
    },
  },
  'black-forest-labs': { image: { ...images, n: 'refused', output_compression: 'refused' } },
  deepgram: {
    transcription: { ...transcriptions, prompt: 'dropped', temperature: 'dropped' },
    // A model is one voice: one of OpenAI's, which its clients cannot leave out, says nothing.
    speech: { ...speeches, 'voice.openai': 'dropped' },
  },
  elevenlabs: {
    transcription: { ...transcriptions, prompt: 'dropped', 'languages.several': 'dropped' },
    speech: { ...speeches, speed: 'mapped' },
  },
  fal: {
    image: { ...images, n: 'mapped', output_compression: 'refused' },
    video: videos('aspect_ratio', 'resolution', 'duration'),
  },
  gemini: {
    embedding: { '*': 'refused', dimensions: 'mapped', user: 'dropped' },
    // Imagen takes parameters of its own; the models that paint by `generateContent` have none.
    image: (model) =>
      model.startsWith('imagen-')
        ? { ...images, n: 'mapped', output_format: 'mapped', output_compression: 'mapped' }
        : { '*': 'refused', ...images },
    video: videos('aspectRatio', 'resolution', 'durationSeconds'),
  },
  kling: { video: videos('aspect_ratio', 'mode', 'duration') },
  luma: {
    image: { ...images, n: 'refused', output_format: 'mapped', output_compression: 'refused' },
    video: videos('aspect_ratio', 'resolution', 'duration'),
  },
  replicate: {
    image: { ...images, n: 'mapped', output_format: 'mapped', output_compression: 'mapped' },
    video: videos('aspect_ratio', 'resolution', 'duration'),
  },
  runway: { video: videos('ratio', 'duration') },
  stability: {
    image: (model) => ({
      ...images,
      mask: model === 'stable-image-inpaint' ? 'mapped' : 'refused',
      n: 'refused',
      output_compression: 'refused',
    }),
  },
};

/** The fate of a field of `givenMediaFields` at a vendor of a dialect, with one of its models. */
export function mediaFieldFate(
  { dialect, capability, model }: { dialect: Dialect; capability: MediaCapability; model: string },
  field: string,
): FieldFate {
  const known = fates[dialect]?.[capability];
  if (known === undefined) return 'kept';
  return fateOf(typeof known === 'function' ? known(model) : known, field);
}
