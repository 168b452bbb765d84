import { completionView } from './completion-view.ts';
import type { Endpoint } from './endpoint.ts';
import { chatChunkChoice, foldChatCompletion } from './fold-chat-completion.ts';
import { invalidParameter } from './invalid-request.ts';
import { prepareChat } from './prepare-chat.ts';

const checkChat: Endpoint['check'] = (_request, { id, legacyCompletions }) => {
  if (!legacyCompletions) return;
  throw invalidParameter(
    'model',
    `The model \`${id}\` is not a chat model, so it cannot be used with /v1/chat/completions: use /v1/completions.`,
  );
};

/** `POST /v1/chat/completions` (https://platform.openai.com/docs/api-reference/chat). */
export const chatCompletions: Endpoint = {
  name: 'chat',
  path: '/v1/chat/completions',
  capability: 'chat',
  prepare: prepareChat,
  check: checkChat,
  view: completionView({
    idPrefix: 'chatcmpl-',
    object: 'chat.completion',
    chunkObject: 'chat.completion.chunk',
    fold: foldChatCompletion,
    chunkChoice: chatChunkChoice,
  }),
};
