import { type Check, defineEndpoint } from '../../pipeline/endpoint.ts';
import { checkChatFields, checkModelLimits } from '../../pipeline/request-extent.ts';
import { invalidParameter } from '../../pipeline/request-fields.ts';
import { eventStream } from '../../reference/operation.ts';
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
