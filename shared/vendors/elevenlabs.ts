import { speechFields, transcriptionFields } from './media-reader-fields.ts';
import type { VendorDescription } from './vendor-description.ts';

/** ElevenLabs. */
export const elevenlabs: VendorDescription = {
  name: 'elevenlabs',
  baseUrl: 'https://api.elevenlabs.io/v1',
  needsKey: true,
  mediaFields: {
    transcription: { ...transcriptionFields, prompt: 'ignored', 'languages.several': 'ignored' },
    speech: { ...speechFields, speed: 'translated' },
  },
  documentation: { does: 'transcription, speech', checkedBy: 'SDK, by hand' },
};
