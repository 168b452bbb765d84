import { type ChatFieldTraits, checkChatFields } from './check-chat-fields.ts';
import { checkModelLimits } from './check-model-limits.ts';
import { completionView } from './completion-view.ts';
import type { Endpoint } from './endpoint.ts';
import { chatChunkChoice, foldChatCompletion } from './fold-chat-completion.ts';
import { invalidParameter } from './invalid-request.ts';
import type { ModelLimits } from './model-limits.ts';
import { prepareChat } from './prepare-chat.ts';

const checkChat: Endpoint['check'] = ({ traits }, model, unsupported) => {
  if (model.legacyCompletions) {
    throw invalidParameter(
      'model',
      `The model \`${model.id}\` is not a chat model, so it cannot be used with /v1/chat/completions: use /v1/completions.`,
    );
  }
  const { limits, ...given } = traits as unknown as ChatFieldTraits & { limits: ModelLimits };
  checkModelLimits(limits, model);
  return checkChatFields(given, model, unsupported);
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
