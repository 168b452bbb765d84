import type { ChatDeviations, VendorDescription } from '../../../shared/vendors/vendor-description.ts';
import { createDownloader } from '../../http/download.ts';
import { createHttpClient } from '../../http/http-client.ts';
import { keyCheck } from '../key-check.ts';
import type { Offering } from '../vendor.ts';
import { OpenAiAnswerReader } from './answer-reader.ts';
import { openAiChat } from './chat.ts';
import { openAiCompletions } from './completions.ts';
import { openAiEmbeddings } from './embeddings.ts';
import { openAiImages } from './images.ts';
import { openAiResponses } from './responses.ts';
import { openAiSpeech } from './speech.ts';
import { openAiTranscriptions } from './transcriptions.ts';
import { openAiVideos } from './videos.ts';

/** A vendor and its key. */
export interface OpenAiDialectOptions {
  readonly name: string;
  /** Including the version: `https://api.openai.com/v1`. */
  readonly baseUrl: string;
  readonly apiKey: string;
  /** Its chats' differences from OpenAI's; omitted: none. */
  readonly deviations?: ChatDeviations;
  /** What it ignores of other requests; omitted: nothing. */
  readonly mediaFields?: NonNullable<VendorDescription['mediaFields']>;
  /** The path that is requested to check the key; omitted: the models. */
  readonly keyCheck?: string;
}

/** A vendor that speaks OpenAI's wire; one file per feature. */
export function createOpenAiDialect({
  name,
  baseUrl,
  apiKey,
  deviations,
  mediaFields,
  keyCheck: path = '/models',
}: OpenAiDialectOptions): Offering<
  'chat' | 'checkKey' | 'complete' | 'embed' | 'image' | 'transcribe' | 'speak' | 'respond' | 'video'
> {
  const http = createHttpClient({
    vendor: name,
    baseUrl,
    headers: { authorization: `Bearer ${apiKey}` },
    secret: apiKey,
  });
  const answerReader = new OpenAiAnswerReader(name, apiKey);
  return {
    name,
    chat: openAiChat(http, answerReader, deviations),
    complete: openAiCompletions(http, answerReader),
    embed: openAiEmbeddings(http, answerReader, mediaFields?.embedding),
    image: openAiImages(http, answerReader, createDownloader({ trustedOrigin: new URL(baseUrl).origin })),
    transcribe: openAiTranscriptions(http, answerReader),
    speak: openAiSpeech(http, answerReader),
    respond: openAiResponses(http, answerReader),
    video: openAiVideos(http, answerReader),
    checkKey: keyCheck(http, path),
    close: () => http.close(),
  };
}
