import type { Config } from '../config.ts';
import { createCatalogue } from './catalogue.ts';

/** Ids of the models that the examples for newcomers call. */
export interface ExampleModels {
  readonly chat: string;
  readonly image: string;
  readonly speech: string;
  /** Undefined where no vendor that is on makes videos. */
  readonly video: string | undefined;
}

/** A vendor's models where one is on, else the sandbox's. */
export function exampleModels(vendors: Config['vendors']): ExampleModels {
  const { openai, sandbox } = vendors;
  return openai === undefined
    ? {
        chat: chatElsewhere(vendors) ?? 'sandbox-chat',
        image: 'sandbox-image',
        speech: 'sandbox-speech',
        video: 'sandbox-video',
      }
    : {
        ...{ chat: 'gpt-4o-mini', image: 'gpt-image-1', speech: 'gpt-4o-mini-tts' },
        // OpenAI has shut its own down.
        video: sandbox && 'sandbox-video',
      };
}

/** A chat model of the other vendors that are on. */
function chatElsewhere(vendors: Config['vendors']): string | undefined {
  const names = Object.keys(vendors).filter((name) => name !== 'sandbox');
  const served = createCatalogue(new Set(names)).list();
  return served.find(({ capability, legacyCompletions }) => capability === 'chat' && !legacyCompletions)?.id;
}
