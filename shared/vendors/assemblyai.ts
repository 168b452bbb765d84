import { transcriptionFields } from './media-reader-fields.ts';
import type { VendorDescription } from './vendor-description.ts';

/** AssemblyAI. */
export const assemblyai: VendorDescription = {
  name: 'assemblyai',
  baseUrl: 'https://api.assemblyai.com/v2',
  needsKey: true,
  mediaFields: {
    transcription: (model) => {
      const isPromptable = model.startsWith('universal-3');
      return {
        ...transcriptionFields,
        prompt: isPromptable ? 'native' : 'ignored',
        // One excludes the other there.
        'prompt.beside_keywords': 'ignored',
        temperature: isPromptable ? 'native' : 'ignored',
      };
    },
  },
  documentation: { does: 'transcription', checkedBy: 'SDK' },
};
