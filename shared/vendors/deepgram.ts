import { speechFields, transcriptionFields } from './media-reader-fields.ts';
import type { VendorDescription } from './vendor-description.ts';

/** Deepgram. */
export const deepgram: VendorDescription = {
  name: 'deepgram',
  baseUrl: 'https://api.deepgram.com/v1',
  needsKey: true,
  mediaFields: {
    transcription: { ...transcriptionFields, prompt: 'ignored', temperature: 'ignored' },
    // A model is one voice: one of OpenAI's, which its clients cannot leave out, says nothing.
    speech: { ...speechFields, 'voice.openai': 'ignored' },
  },
  documentation: { does: 'transcription, speech', checkedBy: 'SDK, by hand' },
};
