import { z } from 'zod';
import { chatMessage, textContent } from './chat-message.ts';
import {
  type BrokenRule,
  brokenToolRule,
  legacyFunction,
  legacyFunctionCall,
  tool,
  toolChoice,
  toolName,
} from './chat-tools.ts';
import { compiledOnUse } from './compiled-on-use.ts';
import { completionFields } from './completion-fields.ts';

const responseFormat = z.discriminatedUnion('type', [
  z.looseObject({ type: z.literal('text') }),
  z.looseObject({ type: z.literal('json_object') }),
  z.looseObject({
    type: z.literal('json_schema'),
    json_schema: z.looseObject({
      name: toolName,
      description: z.string().optional(),
      schema: z.looseObject({}).optional(),
      strict: z.boolean().optional(),
    }),
  }),
]);

const webSearchOptions = z.looseObject({
  user_location: z
    .looseObject({
      type: z.literal('approximate'),
      approximate: z.looseObject({
        country: z.string().optional(),
        region: z.string().optional(),
        city: z.string().optional(),
        timezone: z.string().optional(),
      }),
    })
    .nullish(),
  search_context_size: z.string().optional(),
});

/** Up to 16 custom key-value pairs. */
export const metadata = z
  .record(z.string().max(64), z.string().max(512))
  .refine((pairs) => Object.keys(pairs).length <= 16, 'it can have at most 16 pairs');

const tokenLimit = z.int().min(1).nullish();

// Lists that OpenAI keeps extending (efforts, tiers, voices, formats) are plain strings here: the vendor decides what it knows.
// Null on an optional field was left out before (see `readRequestFields`).
const fields = z.looseObject({
  model: z.string().min(1).max(256),
  messages: z.array(chatMessage).min(1),
  ...completionFields,
  max_tokens: tokenLimit,
  max_completion_tokens: tokenLimit,
  logprobs: z.boolean().nullish(),
  top_logprobs: z.int().min(0).max(20).nullish(),
  tools: z.array(tool).optional(),
  tool_choice: toolChoice.optional(),
  parallel_tool_calls: z.boolean().optional(),
  functions: z.array(legacyFunction).min(1).max(128).optional(),
  function_call: legacyFunctionCall.optional(),
  response_format: responseFormat.optional(),
  modalities: z.array(z.string()).nullish(),
  audio: z
    .looseObject({ voice: z.union([z.string(), z.looseObject({ id: z.string() })]), format: z.string() })
    .nullish(),
  prediction: z.looseObject({ type: z.literal('content'), content: textContent }).nullish(),
  reasoning_effort: z.string().nullish(),
  verbosity: z.string().nullish(),
  service_tier: z.string().nullish(),
  store: z.boolean().nullish(),
  metadata: metadata.nullish(),
  safety_identifier: z.string().max(64).nullish(),
  prompt_cache_key: z.string().nullish(),
  prompt_cache_retention: z.string().nullish(),
  prompt_cache_options: z.looseObject({ ttl: z.string().optional(), mode: z.string().optional() }).optional(),
  moderation: z.looseObject({ model: z.string() }).nullish(),
  web_search_options: webSearchOptions.optional(),
});

/** A chat completion request as a caller sends it. Unknown fields are kept. */
export type ChatRequest = z.infer<typeof fields>;

/**
 * The schema of OpenAI's `CreateChatCompletionRequest`. Compiled: `validate` runs on every request, and the compiled check
 * stops at the first error and builds nothing.
 */
export const chatRequest = compiledOnUse(
  fields.check(({ value, issues }) => {
    const broken = brokenRule(value);
    if (broken) issues.push({ code: 'custom', input: value, path: broken.path, message: broken.message });
  }),
);

function brokenRule(request: ChatRequest): BrokenRule | undefined {
  if (request.stream_options != null && request.stream !== true) {
    return { path: ['stream_options'], message: "it is only allowed when 'stream' is enabled" };
  }
  if (request.top_logprobs != null && request.logprobs !== true) {
    return { path: ['top_logprobs'], message: "it is only allowed when 'logprobs' is enabled" };
  }
  return brokenToolRule(request);
}
