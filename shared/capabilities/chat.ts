import { z } from 'zod';
import { chatMessage, textContent } from './chat-message.ts';
import { compiledOnUse } from './compiled-on-use.ts';
import { completionFields } from './completion-fields.ts';

/** The names that OpenAI accepts for functions, tools and schemas. */
export const toolName = z.string().regex(/^[a-zA-Z0-9_-]{1,64}$/, 'use 1 to 64 of a-z, A-Z, 0-9, underscore and dash');

const description = z.string().optional();
const jsonSchema = z.looseObject({});

/** One entry of `tools`, after OpenAI's `ChatCompletionTool` and `CustomToolChatCompletions`. */
export const tool = z.discriminatedUnion('type', [
  z.looseObject({
    type: z.literal('function'),
    function: z.looseObject({
      name: toolName,
      description,
      parameters: jsonSchema.optional(),
      strict: z.boolean().optional(),
    }),
  }),
  z.looseObject({
    type: z.literal('custom'),
    custom: z.looseObject({
      name: toolName,
      description,
      format: z
        .discriminatedUnion('type', [
          z.looseObject({ type: z.literal('text') }),
          z.looseObject({
            type: z.literal('grammar'),
            grammar: z.looseObject({ definition: z.string(), syntax: z.string() }),
          }),
        ])
        .optional(),
    }),
  }),
]);

const named = z.looseObject({ name: z.string() });

/** `tool_choice`, after OpenAI's `ChatCompletionToolChoiceOption`. */
export const toolChoice = z.union([
  z.enum(['none', 'auto', 'required']),
  z.discriminatedUnion('type', [
    z.looseObject({ type: z.literal('function'), function: named }),
    z.looseObject({ type: z.literal('custom'), custom: named }),
    z.looseObject({
      type: z.literal('allowed_tools'),
      allowed_tools: z.looseObject({ mode: z.enum(['auto', 'required']), tools: z.array(z.looseObject({})) }),
    }),
  ]),
]);

/** One entry of the legacy `functions`. */
const legacyFunction = z.looseObject({ name: toolName, description, parameters: jsonSchema.optional() });

/** The legacy `function_call`. */
const legacyFunctionCall = z.union([z.enum(['none', 'auto']), named]);

interface ToolFields {
  readonly tools?: z.infer<typeof tool>[] | undefined;
  readonly tool_choice?: z.infer<typeof toolChoice> | undefined;
  readonly functions?: z.infer<typeof legacyFunction>[] | undefined;
  readonly function_call?: z.infer<typeof legacyFunctionCall> | undefined;
}

/** A violated rule between request fields: its path and the problem. */
export interface BrokenRule {
  readonly path: (string | number)[];
  readonly message: string;
}

/** The first violated rule between the tools and the tool choice, or undefined. */
function brokenToolRule(request: ToolFields): BrokenRule | undefined {
  const { tools = [], tool_choice: choice, functions = [], function_call: call } = request;
  if (choice !== undefined && tools.length === 0) {
    return { path: ['tool_choice'], message: "it is only allowed when 'tools' are specified" };
  }
  if (typeof choice === 'object') {
    // Looked up: a request may have a hundred thousand tools, and name each of them.
    const offered = new Set(tools.map(nameOfTool));
    const unknown = chosenNames(choice).find(({ type, name }) => !offered.has(`${type} ${name}`));
    if (unknown) return { path: unknown.path, message: "the tool it names is not among 'tools'" };
  }
  if (call !== undefined && functions.length === 0) {
    return { path: ['function_call'], message: "it is only allowed when 'functions' are specified" };
  }
  if (typeof call === 'object' && !functions.some((entry) => entry.name === call.name)) {
    return { path: ['function_call', 'name'], message: "the function it names is not among 'functions'" };
  }
  return undefined;
}

interface ChosenName {
  readonly type: string;
  readonly name: string;
  readonly path: (string | number)[];
}

function chosenNames(choice: Exclude<z.infer<typeof toolChoice>, string>): ChosenName[] {
  switch (choice.type) {
    case 'function':
      return [{ type: 'function', name: choice.function.name, path: ['tool_choice', 'function', 'name'] }];
    case 'custom':
      return [{ type: 'custom', name: choice.custom.name, path: ['tool_choice', 'custom', 'name'] }];
    case 'allowed_tools':
      return choice.allowed_tools.tools.flatMap((entry, index) => {
        const path = ['tool_choice', 'allowed_tools', 'tools', index];
        // Only functions and custom tools are referred to by name; other kinds belong to the vendor.
        for (const type of ['function', 'custom']) {
          const detail = entry[type];
          if (entry.type === type && isNamed(detail)) return [{ type, name: detail.name, path }];
        }
        return [];
      });
  }
}

function isNamed(value: unknown): value is { name: string } {
  return typeof value === 'object' && value !== null && 'name' in value && typeof value.name === 'string';
}

function nameOfTool(entry: z.infer<typeof tool>): string {
  return `${entry.type} ${entry.type === 'function' ? entry.function.name : entry.custom.name}`;
}

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

/** Maximum characters of each end of a text that are read. */
const readCharacters = 256;

/** A turn, as far as an affinity depends on it: of a chat, a response or a message. */
export interface OpeningTurn {
  readonly role?: unknown;
  readonly content?: unknown;
}

/**
 * A short text that is the same for requests which share a prompt cache at their vendor: those with the same
 * `prompt_cache_key`, else those with the same instructions and the same first user turn. Two that differ may have the same
 * one, rarely, which only sends both to the same place. It reveals nothing of the request.
 * @param instructions before all turns
 */
export function cacheAffinity(promptCacheKey: unknown, turns: readonly OpeningTurn[], instructions?: unknown): string {
  if (typeof promptCacheKey === 'string' && promptCacheKey !== '') return `k${hashText(promptCacheKey).toString(36)}`;
  let hash = hashText(firstText(instructions));
  for (const { role, content } of turns) {
    hash = hashText(firstText(content), hash);
    if (role === 'user') break;
  }
  return `t${hash.toString(36)}`;
}

/** Whether an affinity is that of a `prompt_cache_key`, which precedes those of sessions and conversations. */
export function isOfPromptCacheKey(affinity: string): boolean {
  return affinity.startsWith('k');
}

/** The affinity of a session that its client names, or of a conversation. */
export function sessionAffinity(session: string): string {
  return `s${hashText(session).toString(36)}`;
}

/** The text of a turn, or its first part with a text. */
function firstText(content: unknown): string {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return '';
  const part = (content as readonly { readonly text?: unknown }[]).find((each) => typeof each?.text === 'string');
  return part === undefined ? '' : (part.text as string);
}

/** FNV-1a, 32 bits, of both ends of a text and its length: long prompts differ there, and reading all of them would cost more. */
function hashText(text: string, seed = 0x811c9dc5): number {
  let hash = Math.imul(seed ^ text.length, 0x01000193);
  const head = Math.min(text.length, readCharacters);
  for (let at = 0; at < head; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  for (let at = Math.max(head, text.length - readCharacters); at < text.length; at++) {
    hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  }
  return hash >>> 0;
}
