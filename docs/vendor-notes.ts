/** What docs/vendors.md says of a vendor beside its row. */
export interface VendorNote {
  /** What it does here, where its row does not say it (`offers`), or in other words. */
  readonly does?: string;
  /** How it is turned on, where its setting alone does not say it. */
  readonly turnedOnBy?: string;
  /** What the adapter, or the row, was checked by. */
  readonly checkedBy: string;
}

/** By the vendor's name; every row of shared/catalogue/vendors.ts but the sandbox's has one. */
export const vendorNotes: Readonly<Record<string, VendorNote>> = {
  openai: {
    does: 'chat, responses, legacy completions, embeddings, images, videos, transcription, speech',
    checkedBy: 'SDK',
  },
  azure: {
    turnedOnBy: '`AZURE_API_KEY` and `AZURE_BASE_URL` (`https://NAME.openai.azure.com`)',
    does: 'Azure OpenAI, any deployment as `azure/its-name`: chat, responses, legacy completions, embeddings, images (no variations), transcription, speech, videos',
    checkedBy: 'SDK',
  },
  anthropic: { does: 'chat, token counts', checkedBy: 'SDK' },
  bedrock: {
    turnedOnBy:
      '`BEDROCK_API_KEY`: a Bedrock API key, or `ACCESS_KEY_ID:SECRET_ACCESS_KEY[:SESSION_TOKEN]` for signed requests; another region by `BEDROCK_BASE_URL` (`https://bedrock-runtime.eu-west-1.amazonaws.com`)',
    does: 'Amazon Bedrock: chat by Converse; the listed models are those of the United States and of global profiles, any other is `bedrock/its-id`',
    checkedBy: 'SDK',
  },
  gemini: {
    does: 'chat, embeddings, images (Imagen too, for an address that still has it: Google shut it down in August 2026), videos (Veo), token counts',
    checkedBy: 'SDK, by hand',
  },
  'black-forest-labs': { does: 'images', checkedBy: 'documents' },
  stability: {
    does: "images: Stable Image, Stable Diffusion 3.5, inpainting with OpenAI's masks",
    checkedBy: 'documents, of 2025',
  },
  fal: { does: 'images, videos', checkedBy: 'SDK' },
  replicate: { does: 'images, videos', checkedBy: 'SDK' },
  runway: { does: 'videos: Gen-4, and Veo there', checkedBy: 'SDK' },
  luma: { does: 'videos, images; it takes links to pictures, not pictures', checkedBy: 'SDK' },
  kling: {
    turnedOnBy: '`KLING_API_KEY` (`ACCESS_KEY:SECRET_KEY`)',
    does: 'videos',
    checkedBy: 'documents, second-hand',
  },
  deepgram: { does: 'transcription, speech', checkedBy: 'SDK, by hand' },
  elevenlabs: { does: 'transcription, speech', checkedBy: 'SDK, by hand' },
  assemblyai: { does: 'transcription', checkedBy: 'SDK' },
  mistral: { checkedBy: "SDK's types" },
  openrouter: { checkedBy: "SDK's types" },
  groq: { checkedBy: "SDK's types" },
  together: { checkedBy: "SDK's types" },
  cerebras: { checkedBy: "SDK's types" },
  deepseek: { checkedBy: 'documents, some second-hand' },
  xai: { checkedBy: 'documents' },
  perplexity: { checkedBy: 'documents, some second-hand' },
  moonshot: { checkedBy: 'documents, some second-hand' },
  zhipu: { checkedBy: 'documents, some second-hand' },
  minimax: { checkedBy: 'documents, some second-hand' },
  dashscope: { checkedBy: 'documents' },
  fireworks: { checkedBy: 'documents' },
  siliconflow: { checkedBy: 'documents' },
  nvidia: { checkedBy: 'documents' },
  ollama: { checkedBy: 'documents' },
  vllm: { checkedBy: 'documents' },
  'lm-studio': { checkedBy: 'documents' },
};
