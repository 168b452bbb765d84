/** The thread that parses large bodies, one answer to each task, in order. Started by large-bodies.ts. */
import { setPriority } from 'node:os';
import { parentPort } from 'node:worker_threads';
import { ApiError } from '../../../shared/errors.ts';
import { releaseMemory } from '../../../shared/runtime/collections.ts';
import { parseSpeech } from '../../endpoints/audio/parse-speech.ts';
import { parseChat } from '../../endpoints/chat/parse-chat.ts';
import { parseCompletion } from '../../endpoints/completions/parse-completion.ts';
import { parseEmbeddings } from '../../endpoints/embeddings/parse-embeddings.ts';
import { parseImageEdit, parseImageGeneration } from '../../endpoints/images/parse-image.ts';
import { parseMessageCount, parseMessages } from '../../endpoints/messages/parse-messages.ts';
import { editItems } from '../../endpoints/responses/edit-items.ts';
import { parseResponse } from '../../endpoints/responses/parse-response.ts';
import { parseSocketMessage } from '../../endpoints/responses/socket/parse-socket-message.ts';
import { parseVideo, parseVideoRemix } from '../../endpoints/videos/parse-video.ts';
import type { Parse } from '../parsed-request.ts';
import { bytesOf } from '../request-text.ts';
import type { LargeBodyAnswer, LargeBodyTask } from './large-bodies.ts';

/** Of every endpoint that takes JSON. A table of its own: the endpoints themselves would cost the thread 18 MB. */
const parsers: Readonly<Record<string, Parse>> = {
  chat: parseChat,
  completions: parseCompletion,
  embeddings: parseEmbeddings,
  'images.generations': parseImageGeneration,
  'images.edits': parseImageEdit,
  'audio.speech': parseSpeech,
  'responses.ws': parseSocketMessage,
  responses: parseResponse,
  videos: parseVideo,
  'videos.remix': parseVideoRemix,
  messages: parseMessages,
  'messages.count_tokens': parseMessageCount,
};

function answer({ body, ...question }: LargeBodyTask): LargeBodyAnswer {
  try {
    if ('items' in question) return { edited: editItems(Buffer.from(body.buffer).toString(), question.items) };
    const parse = parsers[question.endpoint];
    if (parse === undefined) throw new Error(`the thread does not know the endpoint ${question.endpoint}`);
    const { request, ...parsed } = parse(body);
    return { parsed, request: bytesOf(request) };
  } catch (error) {
    // Other errors are defects: they end the thread and become the cause of a 500.
    if (!(error instanceof ApiError)) throw error;
    return { error: error.toData() };
  }
}

// Linux has a priority for each thread: with few cores, requests in the main thread come first. At 8, a thread keeps a sixth
// of its share; at 10, a tenth, which on a busy machine means half a minute for one body.
if (process.platform === 'linux') setPriority(8);

parentPort?.on('message', (task: LargeBodyTask) => {
  const message = answer(task);
  parentPort?.postMessage(message, 'request' in message ? [message.request.buffer] : []);
  releaseMemory(task.body);
});
