import { z } from 'zod';
import { compiledOnUse } from './compiled-on-use.ts';

const cacheControl = z.looseObject({ type: z.literal('ephemeral') }).nullish();

const text = z.looseObject({ type: z.literal('text'), text: z.string(), cache_control: cacheControl });

const image = z.looseObject({
  type: z.literal('image'),
  source: z.discriminatedUnion('type', [
    z.looseObject({
      type: z.literal('base64'),
      media_type: z.string().regex(/^image\/[\w.+-]{1,64}$/, 'it must be the media type of an image'),
      data: z.string().min(1),
    }),
    z.looseObject({ type: z.literal('url'), url: z.string().min(1) }),
  ]),
  cache_control: cacheControl,
});

const document = z.looseObject({
  type: z.literal('document'),
  source: z.discriminatedUnion('type', [
    z.looseObject({ type: z.literal('base64'), media_type: z.literal('application/pdf'), data: z.string().min(1) }),
    z.looseObject({ type: z.literal('url'), url: z.url({ protocol: /^https?$/ }) }),
    z.looseObject({ type: z.literal('text'), media_type: z.literal('text/plain'), data: z.string() }),
    z.looseObject({
      type: z.literal('content'),
      content: z.union([z.string(), z.array(z.discriminatedUnion('type', [text, image]))]),
    }),
  ]),
  title: z.string().nullish(),
  context: z.string().nullish(),
  citations: z.looseObject({ enabled: z.boolean().optional() }).nullish(),
  cache_control: cacheControl,
});

const searchResult = z.looseObject({
  type: z.literal('search_result'),
  source: z.string(),
  title: z.string(),
  content: z.array(text),
  citations: z.looseObject({ enabled: z.boolean().optional() }).nullish(),
  cache_control: cacheControl,
});

const toolReference = z.looseObject({ type: z.literal('tool_reference'), tool_name: z.string() });

const toolResult = z.looseObject({
  type: z.literal('tool_result'),
  tool_use_id: z.string().min(1),
  content: z
    .union([z.string(), z.array(z.discriminatedUnion('type', [text, image, document, searchResult, toolReference]))])
    .nullish(),
  is_error: z.boolean().nullish(),
  cache_control: cacheControl,
});

const toolUse = z.looseObject({
  type: z.literal('tool_use'),
  id: z.string().min(1),
  name: z.string().min(1),
  input: z.looseObject({}),
  cache_control: cacheControl,
});

const thinkingBlock = z.looseObject({
  type: z.literal('thinking'),
  thinking: z.string(),
  signature: z.string().nullish(),
});
const redactedThinking = z.looseObject({ type: z.literal('redacted_thinking'), data: z.string() });

const userBlock = z.discriminatedUnion('type', [text, image, document, searchResult, toolResult]);
const assistantBlock = z.discriminatedUnion('type', [text, thinkingBlock, redactedThinking, toolUse]);

/** A block of text. */
export type TextBlock = z.infer<typeof text>;
/** A block of a user message. */
export type UserBlock = z.infer<typeof userBlock>;
/** A block of an earlier answer of the model. */
export type AssistantBlock = z.infer<typeof assistantBlock>;

const customTool = z.looseObject({
  type: z.literal('custom').nullish(),
  name: z.string().regex(/^[a-zA-Z0-9_-]{1,128}$/, 'use 1 to 128 of a-z, A-Z, 0-9, underscore and dash'),
  description: z.string().nullish(),
  input_schema: z.looseObject({}),
  strict: z.boolean().nullish(),
  cache_control: cacheControl,
});
/** The types of tools of Anthropic end with a date, except those that also have a name for the newest. */
const definedType = /^(\w{1,55}_\d{8}|tool_search_tool_(bm25|regex)|mcp_toolset)$/;

/** A tool defined, and usually run, by Anthropic: `web_search_20250305`. */
const definedTool = z.looseObject({
  type: z
    .string()
    .regex(
      definedType,
      "use 'name' and 'input_schema' without a type, or the type of a tool of Anthropic, with its date",
    ),
  name: z.string().nullish(),
});

/** An entry of `tools`. */
export type MessageTool = z.infer<typeof customTool> | z.infer<typeof definedTool>;

const namedTool = z.looseObject({ type: z.literal('tool_reference'), name: z.string().min(1) });
const inlineTool = z.looseObject({
  type: z.literal('tool_definition'),
  definition: z.union([customTool, definedTool]),
});
/** Instructions, and changes to the offered tools in the middle of a chat: added, or removed. */
const systemBlock = z.discriminatedUnion('type', [
  text,
  z.looseObject({
    type: z.literal('tool_addition'),
    tool: z.discriminatedUnion('type', [namedTool, inlineTool]),
    cache_control: cacheControl,
  }),
  z.looseObject({ type: z.literal('tool_removal'), tool: namedTool, cache_control: cacheControl }),
]);

/** A block of instructions between the turns. */
export type SystemBlock = z.infer<typeof systemBlock>;

const message = z.discriminatedUnion('role', [
  z.looseObject({ role: z.literal('user'), content: z.union([z.string(), z.array(userBlock).min(1)]) }),
  z.looseObject({ role: z.literal('assistant'), content: z.union([z.string(), z.array(assistantBlock)]) }),
  z.looseObject({
    role: z.literal('system'),
    // It may only change the effort from here on.
    content: z.union([z.string(), z.array(systemBlock)]).nullish(),
    /** `next_user_message`: it counts until a later message of the user. */
    clear_at: z.string().nullish(),
    output_config: z.looseObject({}).nullish(),
  }),
]);

/** One turn; agents also insert instructions (`system`). */
export type MessageTurn = z.infer<typeof message>;

const parallel = { disable_parallel_tool_use: z.boolean().nullish() };
const toolChoice = z.discriminatedUnion('type', [
  z.looseObject({ type: z.literal('auto'), ...parallel }),
  z.looseObject({ type: z.literal('any'), ...parallel }),
  z.looseObject({ type: z.literal('tool'), name: z.string().min(1), ...parallel }),
  z.looseObject({ type: z.literal('none') }),
]);

const display = z.string().nullish();
const thinking = z.discriminatedUnion('type', [
  z.looseObject({ type: z.literal('enabled'), budget_tokens: z.int().min(1024), display }),
  z.looseObject({ type: z.literal('adaptive'), display }),
  z.looseObject({ type: z.literal('between_tools') }),
  z.looseObject({ type: z.literal('disabled') }),
]);

const jsonFormat = z.looseObject({ type: z.literal('json_schema'), schema: z.looseObject({}) }).nullish();

/** Fields shared by requests for a message and for a token count. */
const counted = {
  model: z.string().min(1).max(256),
  messages: z.array(message).min(1),
  system: z.union([z.string(), z.array(text)]).nullish(),
  tools: z.array(z.union([customTool, definedTool])).nullish(),
  tool_choice: toolChoice.nullish(),
  thinking: thinking.nullish(),
  output_config: z.looseObject({ effort: z.string().min(1).nullish(), format: jsonFormat }).nullish(),
  /** The older name of `output_config.format`. */
  output_format: jsonFormat,
  cache_control: cacheControl,
};

const countRequest = z.looseObject(counted);

const createRequest = z.looseObject({
  ...counted,
  /** 0 only writes the prompt cache. */
  max_tokens: z.int().min(0),
  metadata: z.looseObject({ user_id: z.string().nullish() }).nullish(),
  service_tier: z.enum(['auto', 'standard_only']).nullish(),
  // Bounded because they are stored with the job. Other vendors than Anthropic say how many they take.
  stop_sequences: z.array(z.string().min(1).max(1024)).max(64).nullish(),
  stream: z.boolean().nullish(),
  temperature: z.number().min(0).max(1).nullish(),
  top_p: z.number().min(0).max(1).nullish(),
  top_k: z.int().min(0).nullish(),
});

/** Fields of both requests. */
export type MessageInput = z.infer<typeof countRequest>;

/** A request of Anthropic's Messages API (https://docs.claude.com/en/api/messages). Unknown fields are kept. */
export type MessageRequest = z.infer<typeof createRequest>;

/** The schema of `POST /v1/messages`. */
export const messageRequest = compiledOnUse(createRequest);

/** The schema of `POST /v1/messages/count_tokens`. */
export const messageCountRequest = compiledOnUse(countRequest);
