import { type Check, defineEndpoint } from '../../pipeline/endpoint.ts';
import { checkChatFields, checkModelLimits } from '../../pipeline/request-extent.ts';
import { invalidParameter } from '../../pipeline/request-fields.ts';
import { eventStream } from '../../reference/operation.ts';
import { resolveTurns } from './earlier-turns.ts';
import { parseResponse, type ResponseRequirements } from './parse-response.ts';
import { responseFieldNames } from './response-chat-fields.ts';
import { responseView } from './response-view.ts';

/** Vendors without the Responses API run a chat: fields that it ignores are returned, unsupported ones refused. */
const checkResponse: Check<ResponseRequirements> = ({ requirements }, model, unsupported) => {
  const { id, legacyCompletions, responses } = model;
  if (legacyCompletions) {
    throw invalidParameter(
      'model',
      `The model \`${id}\` is not a chat model, so it cannot be used with /v1/responses: use /v1/completions.`,
    );
  }
  const { chatRefused: refused, chatIgnored, chatFields, limits } = requirements;
  checkModelLimits(limits, model);
  if (responses) return undefined;
  if (refused === undefined) {
    const given = { chatFields, chatFieldNames: responseFieldNames };
    return [...chatIgnored, ...checkChatFields(given, model, unsupported)];
  }
  throw invalidParameter(
    refused.param,
    `'${refused.param}' cannot be used with the model \`${id}\`: ${refused.reason}.`,
  );
};

/** `POST /v1/responses` (https://platform.openai.com/docs/api-reference/responses). */
export const responses = defineEndpoint({
  name: 'responses',
  path: '/v1/responses',
  capability: 'chat',
  operation: {
    id: 'createResponse',
    tag: 'Responses',
    summary: 'Create a response',
    description:
      '`input` is a text or a list of items. `previous_response_id` continues a stored response; `"background": true` returns at once.',
    json: 'ResponseRequest',
    answer: { json: 'Response', types: [eventStream] },
    example: { model: 'chat', json: { input: 'Hello!' } },
  },
  parse: parseResponse,
  resolve: resolveTurns(responseView),
  check: checkResponse,
  view: responseView,
});
