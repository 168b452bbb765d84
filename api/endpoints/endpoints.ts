import type { Endpoint } from '../pipeline/endpoint.ts';
import { audioSpeech } from './audio/audio-speech.ts';
import { audioTranscriptions } from './audio/audio-transcriptions.ts';
import { audioTranslations } from './audio/audio-translations.ts';
import { chatCompletions } from './chat/chat-completions.ts';
import { completions } from './completions/completions.ts';
import { embeddings } from './embeddings/embeddings.ts';
import { imagesEdits } from './images/images-edits.ts';
import { imagesGenerations } from './images/images-generations.ts';
import { imagesVariations } from './images/images-variations.ts';
import { messages } from './messages/messages.ts';
import { messagesCountTokens } from './messages/messages-count-tokens.ts';
import { responses } from './responses/responses.ts';
import { videos } from './videos/videos.ts';
import { videosRemix } from './videos/videos-remix.ts';

/** Every endpoint that makes jobs: routes and views are derived from this list. */
export const endpoints: readonly Endpoint[] = [
  chatCompletions,
  completions,
  embeddings,
  imagesGenerations,
  imagesEdits,
  imagesVariations,
  audioTranscriptions,
  audioTranslations,
  audioSpeech,
  responses,
  messages,
  messagesCountTokens,
  videos,
  videosRemix,
];
