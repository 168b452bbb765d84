import { checkModelLimits } from '../../pipeline/check-model-limits.ts';
import { type Check, defineEndpoint } from '../../pipeline/endpoint.ts';
import { invalidParameter } from '../../pipeline/invalid-request.ts';
import { checkChatFields } from '../check-chat-fields.ts';
import { completionView } from '../completions/completion-view.ts';
import { chatChunkChoice, foldChatCompletion } from './fold-chat-completion.ts';
import { type ChatRequirements, parseChat } from './parse-chat.ts';

const checkChat: Check<ChatRequirements> = ({ requirements }, model, unsupported) => {
  if (model.legacyCompletions) {
    throw invalidParameter(
      'model',
      `The model \`${model.id}\` is not a chat model, so it cannot be used with /v1/chat/completions: use /v1/completions.`,
    );
  }
  checkModelLimits(requirements.limits, model);
  return checkChatFields(requirements, model, unsupported);
};

/** `POST /v1/chat/completions` (https://platform.openai.com/docs/api-reference/chat). */
export const chatCompletions = defineEndpoint({
  name: 'chat',
  path: '/v1/chat/completions',
  capability: 'chat',
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
