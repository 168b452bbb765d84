import { anthropicErrorBody } from './anthropic-error.ts';
import type { Endpoint } from './endpoint.ts';
import { invalidParameter } from './invalid-request.ts';
import { messageView } from './message-view.ts';
import { type MessageTraits, prepareMessages } from './prepare-messages.ts';

/** Refuses models that are not for chats, and names what the model's vendor would refuse: its worker leaves that out. */
export const checkMessages: NonNullable<Endpoint['check']> = ({ traits }, { id, legacyCompletions, chat }) => {
  if (legacyCompletions) {
    throw invalidParameter(
      'model',
      `The model \`${id}\` is not a chat model, so it cannot be used with /v1/messages: use /v1/completions.`,
    );
  }
  const { ignored, hints, effort } = traits as unknown as MessageTraits;
  return [...ignored, ...(chat?.hints === false ? hints : []), ...(chat?.effort === false ? effort : [])];
};

/** `POST /v1/messages`: Anthropic's Messages API (https://docs.claude.com/en/api/messages) over any chat model. */
export const messages: Endpoint = {
  name: 'messages',
  path: '/v1/messages',
  capability: 'chat',
  prepare: prepareMessages,
  check: checkMessages,
  errorBody: anthropicErrorBody,
  view: messageView,
};
