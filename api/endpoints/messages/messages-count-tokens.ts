import type { Frame } from '../../../shared/jobs/append.ts';
import { anthropicErrorBody } from '../../http/anthropic-error.ts';
import { defineEndpoint } from '../../pipeline/endpoint.ts';
import { messageErrorEvent } from './message-view.ts';
import { checkMessages } from './messages.ts';
import { parseMessageCount } from './parse-messages.ts';

/**
 * `POST /v1/messages/count_tokens` (https://docs.claude.com/en/api/messages-count-tokens). The end frame is its response:
 * `{"input_tokens":n}`, counted by the vendor if possible, else estimated by a tokenizer.
 */
export const messagesCountTokens = defineEndpoint({
  name: 'messages.count_tokens',
  path: '/v1/messages/count_tokens',
  capability: 'chat',
  operation: {
    id: 'countMessageTokens',
    tag: 'Chat',
    summary: 'Count the tokens of a message (Anthropic)',
    isAnthropic: 'always',
    json: 'MessageCountRequest',
    answer: { json: 'TokenCount' },
    example: { model: 'chat', json: { messages: [{ role: 'user', content: 'Hello!' }] } },
  },
  parse: parseMessageCount,
  check: checkMessages,
  errorBody: anthropicErrorBody,
  view: {
    stream: () => (frame) => (frame.type === 'end' ? [`data: ${frame.text}`] : []),
    held: (_job, frames) => (frames.at(-1) as Frame).text,
    heldFromEnd: true,
    errorEvent: messageErrorEvent,
  },
});
