import type { Capability } from '../../shared/capabilities/capability.ts';
import type { Model } from '../../shared/catalogue/models.ts';

const imagePaths = {
  generation: '/v1/images/generations',
  edit: '/v1/images/edits',
  variation: '/v1/images/variations',
};

const paths: Readonly<Record<Capability, (model: Model) => readonly string[]>> = {
  chat: ({ legacyCompletions }) =>
    legacyCompletions === true ? ['/v1/completions'] : ['/v1/chat/completions', '/v1/responses', '/v1/messages'],
  embedding: () => ['/v1/embeddings'],
  image: ({ image }) => (image?.tasks ?? (['generation'] as const)).map((task) => imagePaths[task]),
  transcription: () => ['/v1/audio/transcriptions'],
  speech: () => ['/v1/audio/speech'],
  video: () => ['/v1/videos'],
};

/** The paths that accept requests for a model. */
export function pathsOf(model: Model): readonly string[] {
  return paths[model.capability](model);
}
