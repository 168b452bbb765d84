import { acceptsAnthropicFields } from '../../../shared/vendors/field-support.ts';
import type { Dialect } from '../../../shared/vendors/vendors.ts';
import { anthropicErrorBody } from '../../http/anthropic-error.ts';
import { type Check, defineEndpoint } from '../../pipeline/endpoint.ts';
import { checkChatFields, checkModelLimits } from '../../pipeline/request-extent.ts';
import { invalidParameter } from '../../pipeline/request-fields.ts';
import { eventStream } from '../../reference/operation.ts';
import { messageView } from './message-view.ts';
import { type MessageRequirements, messageFieldNames, parseMessages } from './parse-messages.ts';

/** Dialects of vendors that fetch a linked document, or whose adapters do. */
const readsLinks: ReadonlySet<Dialect> = new Set(['anthropic', 'bedrock', 'gemini']);

/** Refuses models that are not for chats, and returns fields that the vendor would refuse, which its worker omits. */
export const checkMessages: Check<MessageRequirements> = ({ requirements }, model, unsupported) => {
  const { id, legacyCompletions, chat } = model;
  if (legacyCompletions) {
    throw invalidParameter(
      'model',
      `The model \`${id}\` is not a chat model, so it cannot be used with /v1/messages: use /v1/completions.`,
    );
  }
  const { ignored, hints, foreign, effort, chatFields, limits, linkedDocument } = requirements;
  const isAnthropics = acceptsAnthropicFields(model.vendorRow);
  // Who must send a limit cannot know that of every model. Its worker lowers it to the model's maximum, beyond which there is no answer.
  if (limits) checkModelLimits(isAnthropics ? limits : { ...limits, most: undefined }, model);
  if (limits?.most?.tokens === 0 && !isAnthropics) {
    throw invalidParameter(
      'max_tokens',
      `Invalid 'max_tokens': expected a value >= 1 with \`${id}\`. Only Anthropic writes its prompt cache without an answer.`,
    );
  }
  if (linkedDocument !== undefined && !readsLinks.has(model.vendorRow.dialect)) {
    throw invalidParameter(
      linkedDocument,
      `Invalid '${linkedDocument}': the vendor of \`${id}\` takes no links to documents: send the document itself, in base64.`,
    );
  }
  const chatFieldNames = { ...messageFieldNames, reasoning_effort: effort[0] ?? 'thinking' };
  return [
    ...ignored,
    ...(chat?.hints === false ? hints : []),
    ...(isAnthropics ? [] : [...foreign, ...(chat?.effort === false ? effort : [])]),
    ...checkChatFields({ chatFields, chatFieldNames }, model, unsupported),
  ];
};

/** `POST /v1/messages`: Anthropic's Messages API (https://docs.claude.com/en/api/messages) over any chat model. */
export const messages = defineEndpoint({
  name: 'messages',
  path: '/v1/messages',
  capability: 'chat',
  operation: {
    id: 'createMessage',
    tag: 'Chat',
    summary: 'Create a message (Anthropic)',
    isAnthropic: 'always',
    description: "Anthropic's Messages API, with any chat model. The key may be sent as `x-api-key`.",
    json: 'MessageRequest',
    answer: { json: 'Message', types: [eventStream] },
    example: { model: 'chat', json: { max_tokens: 100, messages: [{ role: 'user', content: 'Hello!' }] } },
  },
  parse: parseMessages,
  check: checkMessages,
  errorBody: anthropicErrorBody,
  view: messageView,
});
