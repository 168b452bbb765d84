import { stringifyExact } from '../../shared/capabilities/exact-json.ts';
import type { ResponseJob } from '../../shared/capabilities/response.ts';
import { ApiError } from '../../shared/errors.ts';
import { isObject, type JsonObject } from '../vendors/support/json-object.ts';
import { ResponseItemsAsChat } from './response-items-as-chat.ts';
import { toolFields } from './response-tools-as-chat.ts';

/**
 * The chat that implements a response: JSON text of a chat request. Fields of the same name and meaning pass, including unknown
 * ones. Fields of the Responses API alone are left out: `include`, `truncation`, `max_tool_calls`, `context_management`,
 * `stream_options`, `client_metadata`, hosted tools, and of `reasoning` all but the effort.
 * @throws ApiError 400 naming the path of what a chat cannot hold.
 */
export function toChatRequest(job: ResponseJob): string {
  const {
    input,
    instructions,
    include,
    tools,
    tool_choice: toolChoice,
    parallel_tool_calls: parallelToolCalls,
    text,
    reasoning,
    top_logprobs: topLogprobs,
    max_output_tokens: maximum,
    prompt,
    truncation: _truncation,
    max_tool_calls: _maxToolCalls,
    context_management: _contextManagement,
    stream_options: _streamOptions,
    client_metadata: _clientMetadata,
    ...rest
  } = job;
  if (prompt != null) {
    throw new ApiError('invalid_request_error', "Prompt templates are not offered for this model: send 'input'.", {
      param: 'prompt',
    });
  }
  return stringifyExact({
    messages: messagesOf(instructions, input),
    ...withoutNulls(rest),
    // The newer of its two names: OpenAI's reasoning models take no other.
    ...withoutNulls({ max_completion_tokens: maximum }),
    ...logprobFields(include, topLogprobs),
    ...textFields(text),
    ...(isObject(reasoning) && withoutNulls({ reasoning_effort: reasoning.effort })),
    ...toolFields({ tools, toolChoice, parallelToolCalls }),
  });
}

function messagesOf(instructions: unknown, input: ResponseJob['input']): readonly JsonObject[] {
  const chat = new ResponseItemsAsChat();
  // Not `developer`: few vendors except OpenAI support it.
  if (typeof instructions === 'string' && instructions !== '') chat.addSystem(instructions);
  input.forEach((item, index) => {
    chat.add(item, `input[${index}]`);
  });
  const messages = chat.end();
  if (messages.length > 0) return messages;
  const message = "Invalid 'input': it holds nothing that this model could be shown.";
  throw new ApiError('invalid_request_error', message, { param: 'input' });
}

/** A chat shows log probabilities whenever they are requested, a response only if they are included. */
function logprobFields(include: unknown, topLogprobs: unknown): JsonObject {
  if (!Array.isArray(include) || !include.includes('message.output_text.logprobs')) return {};
  return { logprobs: true, ...withoutNulls({ top_logprobs: topLogprobs }) };
}

function textFields(text: unknown): JsonObject {
  if (!isObject(text)) return {};
  return withoutNulls({ response_format: responseFormat(text.format), verbosity: text.verbosity });
}

function responseFormat(format: unknown): unknown {
  if (!isObject(format) || format.type === 'text') return undefined;
  if (format.type !== 'json_schema') return format;
  const { type, ...schema } = format;
  return { type, json_schema: withoutNulls(schema) };
}

/** Null means "not given" in a Responses request, but not to every vendor of chats. */
function withoutNulls(fields: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null && value !== undefined));
}
