/** The thread that prepares large bodies, one answer to each task, in order. Started by large-bodies.ts. */
import { setPriority } from 'node:os';
import { parentPort } from 'node:worker_threads';
import { ApiError } from '../shared/errors.ts';
import type { EndpointName } from './endpoints/endpoint-name.ts';
import { prepareChat } from './endpoints/prepare-chat.ts';
import { prepareCompletion } from './endpoints/prepare-completion.ts';
import { prepareEmbeddings } from './endpoints/prepare-embeddings.ts';
import { prepareImageEdit, prepareImageGeneration } from './endpoints/prepare-image.ts';
import { prepareMessageCount, prepareMessages } from './endpoints/prepare-messages.ts';
import { prepareResponse } from './endpoints/prepare-response.ts';
import { prepareSocketMessage } from './endpoints/prepare-socket-message.ts';
import { prepareSpeech } from './endpoints/prepare-speech.ts';
import { prepareVideo, prepareVideoRemix } from './endpoints/prepare-video.ts';
import type { Prepare } from './endpoints/prepared-request.ts';
import type { LargeBodyAnswer, LargeBodyTask } from './large-bodies.ts';

/** Every endpoint that takes JSON. */
const prepares: Partial<Record<EndpointName, Prepare>> = {
  chat: prepareChat,
  completions: prepareCompletion,
  embeddings: prepareEmbeddings,
  'images.generations': prepareImageGeneration,
  'images.edits': prepareImageEdit,
  'audio.speech': prepareSpeech,
  'responses.ws': prepareSocketMessage,
  responses: prepareResponse,
  videos: prepareVideo,
  'videos.remix': prepareVideoRemix,
  messages: prepareMessages,
  'messages.count_tokens': prepareMessageCount,
};
const encoder = new TextEncoder();

function answer({ endpoint, body }: LargeBodyTask): LargeBodyAnswer {
  try {
    const prepare = prepares[endpoint];
    if (prepare === undefined) throw new Error(`the thread does not know the endpoint ${endpoint}`);
    const prepared = prepare(body);
    return { prepared: { ...prepared, request: encoder.encode(prepared.request) } };
  } catch (error) {
    // Anything else is a fault of ours: it ends the thread and arrives there as the cause of a 500.
    if (!(error instanceof ApiError)) throw error;
    return { error: error.toData() };
  }
}

// Linux gives each thread a priority of its own: where cores are few, requests in the main thread come first. At 8, a sixth
// of its share is left to a thread; at 10, a tenth, which a busy machine turns into half a minute for one body.
if (process.platform === 'linux') setPriority(8);

parentPort?.on('message', (task: LargeBodyTask) => {
  const message = answer(task);
  parentPort?.postMessage(message, 'prepared' in message ? [message.prepared.request.buffer] : []);
});
