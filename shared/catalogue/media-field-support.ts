import { type ChatFieldSupport, type FieldSupport, supportOf } from './chat-fields.ts';
import type { MediaCapability } from './media-fields.ts';
import type { Dialect } from './vendors.ts';

/** Support of a capability's fields at one dialect; a function where they depend on the model, by its vendor's name. */
type MediaSupport = ChatFieldSupport | ((model: string) => ChatFieldSupport);

/** What readImageRequest (workers/vendors/support/image-request.ts) does for every vendor that reads its images by it. */
const images: ChatFieldSupport = {
  user: 'ignored',
  size: 'translated',
  mask: 'rejected',
  background: 'rejected',
  moderation: 'rejected',
  quality: 'rejected',
  style: 'rejected',
  input_fidelity: 'rejected',
  partial_images: 'rejected',
};

/** What readTranscriptionRequest (workers/vendors/support/transcription-request.ts) does. */
const transcriptions: ChatFieldSupport = {
  language: 'translated',
  languages: 'translated',
  keywords: 'translated',
  timestamp_granularities: 'translated',
  chunking_strategy: 'ignored',
  include: 'rejected',
  known_speaker_names: 'rejected',
  known_speaker_references: 'rejected',
};

/** What readSpeechRequest (workers/vendors/support/speech-request.ts) does. */
const speeches: ChatFieldSupport = { instructions: 'rejected', voice: 'translated' };

/**
 * What readVideoRequest (workers/vendors/support/video-request.ts) does: other fields are the vendor's own.
 * @param said what the vendor calls a video's size and length, which every job has already
 */
function videos(...said: readonly string[]): ChatFieldSupport {
  return { user: 'ignored', ...Object.fromEntries(said.map((name) => [name, 'rejected'])) };
}

/**
 * What becomes of the fields of requests other than chats, wherever a vendor does not speak OpenAI's wire: the one place
 * where an adapter that translates says so. A field without an entry has the support of `*`, or is kept. The fields of a
 * vendor's own that its adapter does not let through (a webhook, say) are refused there.
 */
const support: Partial<Record<Dialect, Partial<Record<MediaCapability, MediaSupport>>>> = {
  assemblyai: {
    transcription: (model) => {
      const isPromptable = model.startsWith('universal-3');
      return {
        ...transcriptions,
        prompt: isPromptable ? 'native' : 'ignored',
        // One excludes the other there.
        'prompt.beside_keywords': 'ignored',
        temperature: isPromptable ? 'native' : 'ignored',
      };
    },
  },
  'black-forest-labs': { image: { ...images, n: 'rejected', output_compression: 'rejected' } },
  deepgram: {
    transcription: { ...transcriptions, prompt: 'ignored', temperature: 'ignored' },
    // A model is one voice: one of OpenAI's, which its clients cannot leave out, says nothing.
    speech: { ...speeches, 'voice.openai': 'ignored' },
  },
  elevenlabs: {
    transcription: { ...transcriptions, prompt: 'ignored', 'languages.several': 'ignored' },
    speech: { ...speeches, speed: 'translated' },
  },
  fal: {
    image: { ...images, n: 'translated', output_compression: 'rejected' },
    video: videos('aspect_ratio', 'resolution', 'duration'),
  },
  gemini: {
    embedding: { '*': 'rejected', dimensions: 'translated', user: 'ignored' },
    // Imagen takes parameters of its own; the models that paint by `generateContent` have none.
    image: (model) =>
      model.startsWith('imagen-')
        ? { ...images, n: 'translated', output_format: 'translated', output_compression: 'translated' }
        : { '*': 'rejected', ...images },
    video: videos('aspectRatio', 'resolution', 'durationSeconds'),
  },
  kling: { video: videos('aspect_ratio', 'mode', 'duration') },
  luma: {
    image: { ...images, n: 'rejected', output_format: 'translated', output_compression: 'rejected' },
    video: videos('aspect_ratio', 'resolution', 'duration'),
  },
  replicate: {
    image: { ...images, n: 'translated', output_format: 'translated', output_compression: 'translated' },
    video: videos('aspect_ratio', 'resolution', 'duration'),
  },
  runway: { video: videos('ratio', 'duration') },
  stability: {
    image: (model) => ({
      ...images,
      mask: model === 'stable-image-inpaint' ? 'translated' : 'rejected',
      n: 'rejected',
      output_compression: 'rejected',
    }),
  },
};

/** The support of a field of `givenMediaFields` at a vendor of a dialect, with one of its models. */
export function mediaFieldSupport(
  { dialect, capability, model }: { dialect: Dialect; capability: MediaCapability; model: string },
  field: string,
): FieldSupport {
  const known = support[dialect]?.[capability];
  if (known === undefined) return 'native';
  return supportOf(typeof known === 'function' ? known(model) : known, field);
}
