import type { Frame } from '../../shared/jobs/frames.ts';
import type { Endpoint, ViewedJob } from './endpoint.ts';
import { foldChatCompletion } from './fold-chat-completion.ts';
import { prepareChat } from './prepare-chat.ts';

const json = (value: unknown): string => JSON.stringify(value);

/** The fields that lead every object of a chat answer, ready to be followed by the frame's own. */
function envelope(job: ViewedJob, object: string): string {
  const created = Math.floor(job.createdAt / 1000);
  return `{"id":"chatcmpl-${job.id}","object":"${object}","created":${created},"model":${json(job.model)}`;
}

/** Puts the envelope before a frame's fields without parsing them: a token's cost is a string copy. */
function splice(head: string, text: string): string {
  return text === '{}' ? `${head}}` : `${head},${text.slice(1)}`;
}

/**
 * Streamed: a chunk per delta. The end becomes the usage chunk, where asked for, and `[DONE]`. A held answer watched as a
 * stream is one chat.completion object and `[DONE]`.
 */
function chatStream(job: ViewedJob): (frame: Frame) => string[] {
  const includeUsage = job.viewOptions.includeUsage === true;
  const chunk = envelope(job, 'chat.completion.chunk') + (includeUsage ? ',"usage":null' : '');
  return (frame) => {
    if (frame.type === 'delta') return [`data: ${splice(chunk, frame.text)}`];
    if (frame.type !== 'end') return [];
    const end = JSON.parse(frame.text) as { choices?: unknown; usage?: unknown };
    if (end.choices !== undefined)
      return [`data: ${splice(envelope(job, 'chat.completion'), frame.text)}`, 'data: [DONE]'];
    if (!includeUsage) return ['data: [DONE]'];
    const usage = `,"choices":[],"usage":${json(end.usage ?? null)}}`;
    return [`data: ${envelope(job, 'chat.completion.chunk')}${usage}`, 'data: [DONE]'];
  };
}

function chatCompletion(job: ViewedJob, frames: readonly Frame[]): string {
  const end = frames.at(-1) as Frame;
  // A held call has one frame, and its text is the body already.
  const body = frames.length === 1 ? end.text : json(foldChatCompletion(frames));
  return splice(envelope(job, 'chat.completion'), body);
}

/** `POST /v1/chat/completions` (https://platform.openai.com/docs/api-reference/chat). */
export const chatCompletions: Endpoint = {
  name: 'chat',
  path: '/v1/chat/completions',
  capability: 'chat',
  prepare: prepareChat,
  view: { stream: chatStream, held: chatCompletion },
};
