import type { Config } from '../config.ts';

/** Ids of the models that the examples for newcomers call. */
export interface ExampleModels {
  readonly chat: string;
  readonly image: string;
  readonly speech: string;
}

/** A vendor's models where one is on, else the sandbox's. */
export function exampleModels({ openai }: Config['vendors']): ExampleModels {
  return openai === undefined
    ? { chat: 'sandbox-chat', image: 'sandbox-image', speech: 'sandbox-speech' }
    : { chat: 'gpt-4o-mini', image: 'gpt-image-1', speech: 'gpt-4o-mini-tts' };
}
