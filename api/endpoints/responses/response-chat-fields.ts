import type { ResponseRequest } from '../../../shared/capabilities/response-request.ts';
import { callableTools } from '../../../shared/capabilities/response-tools.ts';
import { givenChatFields } from '../../../shared/vendors/field-support.ts';

/** Fields that only the Responses API has, or that a chat has in another form. */
const ownFields = new Set([
  ...['input', 'instructions', 'include', 'text', 'reasoning', 'max_output_tokens', 'top_logprobs', 'prompt', 'tools'],
  ...['tool_choice', 'parallel_tool_calls', 'truncation', 'max_tool_calls', 'context_management', 'stream_options'],
  ...['client_metadata', 'conversation', 'previous_response_id', 'background', 'store'],
]);

/** A response's names of the fields of the substitute chat. */
export const responseFieldNames: Readonly<Record<string, string>> = {
  max_completion_tokens: 'max_output_tokens',
  response_format: 'text.format',
  verbosity: 'text.verbosity',
  reasoning_effort: 'reasoning.effort',
  logprobs: 'include',
  'messages.content.image_url.detail': 'input.content.detail',
};

/** The fields of the chat that replaces a response (see `givenChatFields`). */
export function responseChatFields(request: ResponseRequest): string[] {
  const { text, reasoning, include, tools, max_output_tokens: maximum } = request;
  const hasTools = callableTools(tools ?? []).length > 0;
  const isLogged = include?.includes('message.output_text.logprobs') === true;
  const same = Object.entries(request).filter(([name]) => !ownFields.has(name));
  return givenChatFields({
    ...Object.fromEntries(same),
    max_completion_tokens: maximum,
    response_format: text?.format,
    verbosity: text?.verbosity,
    reasoning_effort: reasoning?.effort,
    ...(isLogged && { logprobs: true, top_logprobs: request.top_logprobs }),
    ...(hasTools && { tools, tool_choice: request.tool_choice, parallel_tool_calls: request.parallel_tool_calls }),
  });
}
