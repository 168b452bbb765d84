import type { VendorDescription } from './vendor-description.ts';

/** Azure OpenAI. */
export const azure: VendorDescription = {
  // A model is what the operator has deployed, under a name of his own.
  name: 'azure',
  baseUrl: 'https://NAME.openai.azure.com',
  needsBaseUrl: true,
  needsKey: true,
  isOpen: true,
  // A deployment's own setting.
  autoTier: 'priority',
  // As at OpenAI itself.
  chat: { hints: false },
  documentation: {
    turnedOnBy: '`AZURE_API_KEY` and `AZURE_BASE_URL` (`https://NAME.openai.azure.com`)',
    does: 'Azure OpenAI, any deployment as `azure/its-name`: chat, responses, legacy completions, embeddings, images (no variations), transcription, speech, videos',
    checkedBy: 'SDK',
  },
};
