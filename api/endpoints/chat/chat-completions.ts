import { defineEndpoint } from '../../pipeline/endpoint.ts';
import { eventStream } from '../../reference/operation.ts';
import { completionView } from '../completions/completion-view.ts';
import { chatChunkChoice, foldChatCompletion } from './fold-chat-completion.ts';
import { checkChat, parseChat } from './parse-chat.ts';

/** `POST /v1/chat/completions` (https://platform.openai.com/docs/api-reference/chat). */
export const chatCompletions = defineEndpoint({
  name: 'chat',
  path: '/v1/chat/completions',
  capability: 'chat',
  operation: {
    id: 'createChatCompletion',
    tag: 'Chat',
    summary: 'Create a chat completion',
    description: 'With `"stream": true` the answer comes as events, and ends with `[DONE]`.',
    json: 'ChatCompletionRequest',
    answer: { json: 'ChatCompletion', types: [eventStream] },
    example: { model: 'chat', json: { messages: [{ role: 'user', content: 'Hello!' }] } },
  },
  parse: parseChat,
  check: checkChat,
  view: completionView({
    idPrefix: 'chatcmpl-',
    object: 'chat.completion',
    chunkObject: 'chat.completion.chunk',
    fold: foldChatCompletion,
    chunkChoice: chatChunkChoice,
  }),
});
