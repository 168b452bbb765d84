import type { ChatFieldSupport } from './vendor-description.ts';

/** Fields by which a vendor would send its result elsewhere. */
const delivery: ChatFieldSupport = {
  callback_url: 'rejected',
  webhook: 'rejected',
  webhook_url: 'rejected',
  webhook_secret: 'rejected',
};

/** What readImageRequest (workers/vendors/support/image-request.ts) does for every vendor that reads its images by it. */
export const imageFields: ChatFieldSupport = {
  ...delivery,
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
export const transcriptionFields: ChatFieldSupport = {
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
export const speechFields: ChatFieldSupport = { instructions: 'rejected', voice: 'translated' };

/**
 * What readVideoRequest (workers/vendors/support/video-request.ts) does: other fields are the vendor's own.
 * @param said what the vendor calls a video's size and length, which every job has already
 */
export function videoFields(...said: readonly string[]): ChatFieldSupport {
  return { ...delivery, user: 'ignored', ...Object.fromEntries(said.map((name) => [name, 'rejected'])) };
}
