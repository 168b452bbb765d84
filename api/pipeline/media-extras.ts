import type { MediaCapability } from '../../shared/catalogue/media-fields.ts';
import { type BilledExtra, extrasOf, type Fields, rootOf } from './vendor-facts.ts';

/** Fields of requests for media and embeddings that cost nothing besides what the model's prices count. */
const freeMediaFields: Readonly<Record<MediaCapability, ReadonlySet<string>>> = {
  embedding: new Set([
    ...['input', 'dimensions', 'encoding_format', 'user', 'metadata', 'input_type', 'task_type', 'truncate'],
    ...['normalized', 'instruction'],
  ]),
  image: new Set([
    ...['prompt', 'n', 'size', 'quality', 'style', 'background', 'moderation', 'output_format', 'output_compression'],
    ...['partial_images', 'input_fidelity', 'user', 'metadata', 'mask', 'seed', 'negative_prompt', 'aspect_ratio'],
  ]),
  transcription: new Set([
    ...['language', 'languages', 'keywords', 'prompt', 'temperature', 'timestamp_granularities', 'include', 'user'],
    ...['chunking_strategy', 'known_speaker_names', 'known_speaker_references'],
  ]),
  speech: new Set(['input', 'voice', 'instructions', 'response_format', 'speed', 'stream_format', 'user', 'metadata']),
  video: new Set(['prompt', 'size', 'seconds', 'user', 'metadata', 'seed', 'negative_prompt']),
};

/** The extras of a request for media or embeddings. @param given see `givenMediaFields` */
export function mediaExtras(capability: MediaCapability, given: readonly string[], fields: Fields): BilledExtra[] {
  const free = freeMediaFields[capability];
  return given.flatMap((field): BilledExtra[] => {
    const name = rootOf(field);
    // Prices per image may include one for high definition.
    if (name === 'quality' && fields.quality === 'hd') return [{ param: name, name: 'quality.hd', coveredBy: 'hd' }];
    // Prices of searches and tiers are for text.
    return free.has(name) ? [] : extrasOf(name, fields).map(({ coveredBy: _, ...extra }) => extra);
  });
}
