import type { Capability } from '../../shared/capabilities/capability.ts';
import { ApiError } from '../../shared/errors.ts';
import { performChat } from './perform-chat.ts';
import { performEmbedding } from './perform-embedding.ts';
import { performImage } from './perform-image.ts';
import { performSpeech } from './perform-speech.ts';
import { methodOf, type Perform } from './performance.ts';

/** What becomes of the jobs of each capability. */
export const perform: Record<Capability, Perform> = {
  chat: performChat,
  embedding: performEmbedding,
  image: performImage,
  transcription: ({ vendor, call, sink }) => methodOf(vendor, 'transcribe')(call, sink),
  speech: performSpeech,
  video: async () => {
    throw new ApiError('server_error', "The model's vendor does not offer videos.");
  },
};
