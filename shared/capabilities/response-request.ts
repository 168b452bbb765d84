import { z } from 'zod';
import { type BrokenRule, metadata, toolName } from './chat.ts';
import { compiledOnUse } from './compiled-on-use.ts';
import { penalty } from './completion-fields.ts';
import { responseItem } from './response-items.ts';
import { brokenResponseToolRule, responseTool, responseToolChoice } from './response-tools.ts';

const textFormat = z.discriminatedUnion('type', [
  z.looseObject({ type: z.literal('text') }),
  z.looseObject({ type: z.literal('json_object') }),
  z.looseObject({
    type: z.literal('json_schema'),
    name: toolName,
    description: z.string().nullish(),
    schema: z.looseObject({}),
    strict: z.boolean().nullish(),
  }),
]);

const text = z.looseObject({ format: textFormat.nullish(), verbosity: z.string().nullish() });

const reasoning = z.looseObject({
  effort: z.string().nullish(),
  summary: z.enum(['auto', 'concise', 'detailed']).nullish(),
  generate_summary: z.enum(['auto', 'concise', 'detailed']).nullish(),
  context: z.string().nullish(),
  mode: z.string().nullish(),
});

/** Optional parts of a response; OpenAI's `IncludeEnum`. */
export const includable = z.enum([
  'file_search_call.results',
  'web_search_call.results',
  'web_search_call.action.sources',
  'message.input_image.image_url',
  'computer_call_output.output.image_url',
  'code_interpreter_call.outputs',
  'reasoning.encrypted_content',
  'message.output_text.logprobs',
]);

// As in chat.ts: lists that OpenAI keeps extending (efforts, tiers, retentions) are plain strings.
const fields = z.looseObject({
  model: z.string().min(1).max(256),
  input: z.union([z.string(), z.array(responseItem)]).nullish(),
  instructions: z.string().nullish(),
  previous_response_id: z.string().min(1).max(128).nullish(),
  stream: z.boolean().nullish(),
  stream_options: z.looseObject({ include_obfuscation: z.boolean().nullish() }).nullish(),
  store: z.boolean().nullish(),
  background: z.boolean().nullish(),
  temperature: z.number().min(0).max(2).nullish(),
  top_p: z.number().min(0).max(1).nullish(),
  // In OpenAI's Response object, not in its request; a chat used as a fallback accepts them.
  presence_penalty: penalty,
  frequency_penalty: penalty,
  max_output_tokens: z.int().min(16).nullish(),
  max_tool_calls: z.int().min(1).nullish(),
  top_logprobs: z.int().min(0).max(20).nullish(),
  include: z.array(includable).nullish(),
  tools: z.array(responseTool).nullish(),
  tool_choice: responseToolChoice.nullish(),
  parallel_tool_calls: z.boolean().nullish(),
  text: text.nullish(),
  reasoning: reasoning.nullish(),
  truncation: z.enum(['auto', 'disabled']).nullish(),
  context_management: z
    .array(z.looseObject({ type: z.string(), compact_threshold: z.int().min(1000).nullish() }))
    .nullish(),
  metadata: metadata.nullish(),
  service_tier: z.string().nullish(),
  user: z.string().nullish(),
  safety_identifier: z.string().max(64).nullish(),
  prompt_cache_key: z.string().nullish(),
  prompt_cache_retention: z.string().nullish(),
  prompt_cache_options: z.looseObject({ ttl: z.string().nullish(), mode: z.string().nullish() }).nullish(),
  moderation: z.looseObject({ model: z.string() }).nullish(),
  conversation: z.unknown().optional(),
  prompt: z.unknown().optional(),
});

/** A request for a response as a caller sends it. Unknown fields are kept. */
export type ResponseRequest = z.infer<typeof fields>;

/** The schema of OpenAI's `CreateResponse`. Compiled for the reason given in chat.ts. */
export const responseRequest = compiledOnUse(
  fields.check(({ value, issues }) => {
    const broken = brokenRule(value);
    if (broken) issues.push({ code: 'custom', input: value, path: broken.path, message: broken.message });
  }),
);

function brokenRule(request: ResponseRequest): BrokenRule | undefined {
  if (request.conversation != null) {
    return { path: ['conversation'], message: "conversations are not offered: use 'previous_response_id'" };
  }
  if (request.prompt != null) return { path: ['prompt'], message: 'prompt templates are not offered' };
  if (isEmpty(request) && request.previous_response_id == null) {
    return { path: ['input'], message: "it is required, unless 'previous_response_id' is given" };
  }
  if (request.background === true && request.store === false) {
    return { path: ['background'], message: "it needs 'store' to be true" };
  }
  if (request.stream_options != null && request.stream !== true) {
    return { path: ['stream_options'], message: "it is only allowed when 'stream' is enabled" };
  }
  const tools = toolsOf(request);
  return tools === undefined ? undefined : brokenResponseToolRule(tools, request.tool_choice);
}

function isEmpty({ input }: ResponseRequest): boolean {
  return input == null || (Array.isArray(input) && input.length === 0);
}

/** The tools of a request; undefined if its input may add more. */
function toolsOf({ input, tools }: ResponseRequest): NonNullable<ResponseRequest['tools']> | undefined {
  const bringsTools = Array.isArray(input) && input.some(({ type }) => type === 'additional_tools');
  return bringsTools ? undefined : (tools ?? []);
}
