import { type CatalogueSources, createCatalogue } from './catalogue.ts';

/** Ids of the models used in examples for newcomers. */
export interface ExampleModels {
  readonly chat: string;
  readonly image: string;
  readonly speech: string;
  /** Undefined if no enabled vendor makes videos. */
  readonly video: string | undefined;
}

/** OpenAI's models if it is enabled and has them, else the sandbox's; for a chat any other vendor's. */
export function exampleModels({ vendors, models }: CatalogueSources): ExampleModels {
  const { sandbox, ...others } = vendors;
  const served = createCatalogue({ vendors: others, ...(models && { models }) }).list();
  const known = (id: string) => (vendors.openai && served.some((model) => model.id === id) ? id : undefined);
  const anyChat = served.find(({ capability, legacyCompletions }) => capability === 'chat' && !legacyCompletions)?.id;
  return {
    chat: known('gpt-4o-mini') ?? anyChat ?? 'sandbox-chat',
    image: known('gpt-image-2') ?? 'sandbox-image',
    speech: known('gpt-4o-mini-tts') ?? 'sandbox-speech',
    // OpenAI has shut its own down.
    video: vendors.openai && !sandbox ? undefined : 'sandbox-video',
  };
}
