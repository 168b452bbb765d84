import { createCallerDownloader } from '../../http/download.ts';
import { createHttpClient } from '../../http/http-client.ts';
import { keyCheck } from '../key-check.ts';
import { createFilmDownloader } from '../support/video-request.ts';
import type { Offering } from '../vendor.ts';
import type { VendorOptions } from '../vendor-options.ts';
import { GeminiAnswerReader } from './answer-reader.ts';
import { geminiChat, geminiTokenCount } from './chat.ts';
import { geminiEmbeddings } from './embeddings.ts';
import { geminiImagen, isImagen } from './imagen.ts';
import { geminiImages } from './images.ts';
import { geminiVideos } from './videos.ts';

/** Google's Gemini API (https://ai.google.dev/api); one file per feature. The key goes in a header, never in a URL. */
export function createGemini({
  name,
  baseUrl,
  apiKey,
}: VendorOptions): Offering<'chat' | 'embed' | 'image' | 'countTokens' | 'video' | 'checkKey'> {
  const reader = new GeminiAnswerReader(name, apiKey);
  const headers = { 'x-goog-api-key': apiKey };
  const http = createHttpClient({
    vendor: name,
    baseUrl,
    headers,
    secret: apiKey,
    toStatusError: (status, body, headers) => reader.statusError(status, body, headers),
  });
  const download = createCallerDownloader();
  const images = geminiImages(http, reader, download);
  const imagen = geminiImagen(http, download);
  return {
    name,
    chat: geminiChat(http, reader, download),
    countTokens: geminiTokenCount(http, reader, download),
    embed: geminiEmbeddings(http, reader),
    image: (call, sink) => (isImagen(call.model) ? imagen : images)(call, sink),
    video: geminiVideos(http, reader, {
      ofCallers: download,
      ofFilms: createFilmDownloader(baseUrl, undefined, headers),
    }),
    checkKey: keyCheck(http, '/models?pageSize=1'),
    close: () => http.close(),
  };
}
