import type { PlacedImageJob } from '../../../shared/capabilities/image.ts';
import { createDownloader } from '../../http/download.ts';
import { createHttpClient, type HttpClient } from '../../http/http-client.ts';
import { openAiCompletions } from '../openai/completions.ts';
import { openAiEmbeddings } from '../openai/embeddings.ts';
import { openAiImages } from '../openai/images.ts';
import { openAiResponses } from '../openai/responses.ts';
import { openAiSpeech } from '../openai/speech.ts';
import { openAiTranscriptions } from '../openai/transcriptions.ts';
import { openAiVideos } from '../openai/videos.ts';
import { requestText } from '../request-body.ts';
import { unsupportedField } from '../support/unsupported-field.ts';
import type { ImageMethod, Offering } from '../vendor.ts';
import type { VendorOptions } from '../vendor-options.ts';
import { AzureAnswerReader } from './answer-reader.ts';
import { azureChat } from './chat.ts';

/** The query of preview features of the v1 API: audio and images. Videos are documented without a version. */
const preview = 'api-version=preview';

/**
 * Azure OpenAI by its v1 API, OpenAI's wire under other addresses and another header; `model` is a deployment's name
 * (https://learn.microsoft.com/azure/ai-foundry/openai/api-version-lifecycle, and its
 * https://learn.microsoft.com/azure/ai-foundry/openai/reference-preview-latest for the paths, read on 2026-11-21).
 * @param baseUrl of the resource, `https://NAME.openai.azure.com`, with or without the `/openai/v1` of the API behind it.
 */
export function createAzure({
  name,
  baseUrl,
  apiKey,
}: VendorOptions): Offering<'chat' | 'complete' | 'embed' | 'image' | 'transcribe' | 'speak' | 'respond' | 'video'> {
  const reader = new AzureAnswerReader(name, apiKey);
  const http = createHttpClient({
    vendor: name,
    baseUrl: `${baseUrl.replace(/\/openai(\/v1)?$/, '')}/openai/v1`,
    headers: { 'api-key': apiKey },
    secret: apiKey,
    toStatusError: (status, body, headers) => reader.statusError(status, body, headers),
  });
  const previews = withQuery(http, preview);
  const download = createDownloader({ trustedOrigin: new URL(baseUrl).origin });
  return {
    name,
    chat: azureChat(http, reader),
    complete: openAiCompletions(http, reader),
    embed: openAiEmbeddings(http, reader),
    image: azureImages(openAiImages(previews, reader, download)),
    transcribe: openAiTranscriptions(previews, reader),
    speak: openAiSpeech(previews, reader),
    respond: openAiResponses(http, reader),
    video: openAiVideos(http, reader),
    close: () => http.close(),
  };
}

/** The same client, with a query appended to every path. */
function withQuery(http: HttpClient, query: string): HttpClient {
  const extended = <Request extends { readonly path: string }>(request: Request): Request => ({
    ...request,
    path: `${request.path}${request.path.includes('?') ? '&' : '?'}${query}`,
  });
  return {
    post: (request) => http.post(extended(request)),
    postForBytes: (request) => http.postForBytes(extended(request)),
    get: (request) => http.get(extended(request)),
    put: (request) => http.put(extended(request)),
    delete: (request) => http.delete(extended(request)),
    close: () => http.close(),
  };
}

/**
 * Azure has only generations and edits. `response_format`, which some of its models refuse, is never sent, since a deployment's
 * name does not reveal its model: any answer is converted to what the caller requested.
 */
function azureImages(image: ImageMethod): ImageMethod {
  return async (call, sink) => {
    const job = JSON.parse(requestText(call.request)) as PlacedImageJob;
    if (job.task === 'variation') throw unsupportedField('model', 'its vendor makes no variations');
    const adapted: PlacedImageJob = { ...job, takes_response_format: false };
    return await image({ ...call, request: JSON.stringify(adapted) }, sink);
  };
}
