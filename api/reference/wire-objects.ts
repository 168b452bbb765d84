import { z } from 'zod';

const seconds = z.int().describe('Seconds since 1970.');
const usage = z.looseObject({}).nullish().describe("The vendor's usage, as it came.");
const list = <Item extends z.ZodType>(item: Item) => z.looseObject({ object: z.literal('list'), data: z.array(item) });
const page = <Item extends z.ZodType>(item: Item) =>
  z.looseObject({
    object: z.literal('list'),
    data: z.array(item),
    first_id: z.string().nullable(),
    last_id: z.string().nullable(),
    has_more: z.boolean(),
  });

const model = z.looseObject({
  id: z.string(),
  object: z.literal('model'),
  created: seconds,
  owned_by: z.string(),
  capability: z
    .string()
    .optional()
    .describe(
      'What it is for: chat, embedding, image, transcription, speech or video. Not known of a model that is not listed.',
    ),
  context_window: z.int().optional().describe('Tokens of input and output together.'),
  max_output_tokens: z.int().optional(),
  input: z.array(z.string()).optional().describe('What a request may hold.'),
  output: z.array(z.string()).optional().describe('What an answer may hold.'),
  reasoning: z.boolean().optional(),
  prices: z
    .looseObject({})
    .optional()
    .describe(
      'Dollars: for a million tokens (`input`, `cached_input`, `cache_write`, `output`, `image_output`, `audio_input`, `image_input`), an `image`, a `second`, a `character`, a `request`; the same at other service tiers by their names (`tiers`).',
    ),
  deprecated_at: seconds.optional().describe('When its vendor shuts it down, in seconds since 1970.'),
  shutdown_date: z.string().optional().describe('The day of that, as OpenAI names it: `2026-10-23`.'),
});
const response = z.looseObject({
  id: z.string(),
  object: z.literal('response'),
  created_at: seconds,
  status: z.enum(['queued', 'in_progress', 'completed', 'incomplete', 'failed', 'cancelled']),
  model: z.string(),
  output: z.array(z.looseObject({ type: z.string() })),
  error: z.looseObject({ code: z.string(), message: z.string() }).nullable(),
  usage,
});
const video = z.looseObject({
  id: z.string(),
  object: z.literal('video'),
  model: z.string(),
  status: z.enum(['queued', 'in_progress', 'completed', 'failed']),
  progress: z.int().min(0).max(100).describe('Percent.'),
  created_at: seconds,
  completed_at: seconds.nullable(),
  expires_at: seconds.nullable().describe('When its files go, in seconds since 1970.'),
  prompt: z.string(),
  size: z.string(),
  seconds: z.string(),
  remixed_from_video_id: z.string().nullable(),
  error: z.looseObject({ code: z.string(), message: z.string() }).nullable(),
});

const anthropicModel = z.looseObject({
  type: z.literal('model'),
  id: z.string(),
  display_name: z.string(),
  created_at: z.string().describe('RFC 3339.'),
  max_input_tokens: z.int().nullable(),
  max_tokens: z.int().nullable(),
});
const anthropicModels = z.looseObject({
  data: z.array(anthropicModel),
  has_more: z.boolean(),
  first_id: z.string().nullable(),
  last_id: z.string().nullable(),
});
const openAiError = z.looseObject({
  message: z.string(),
  type: z.string(),
  param: z.string().nullable(),
  code: z.string().nullable(),
});
const anthropicError = z.looseObject({
  type: z.literal('error'),
  error: z.looseObject({ type: z.string(), message: z.string() }),
  request_id: z.string().nullish(),
});

/** Objects of OpenAI's and Anthropic's APIs, with the fields common to all vendors: further fields are the vendors'. */
export const wireObjects = {
  ChatCompletion: z.looseObject({
    id: z.string(),
    object: z.literal('chat.completion'),
    created: seconds,
    model: z.string(),
    choices: z.array(
      z.looseObject({
        index: z.int(),
        message: z.looseObject({ role: z.literal('assistant'), content: z.string().nullish() }),
        finish_reason: z.string().nullable(),
      }),
    ),
    usage,
  }),
  Completion: z.looseObject({
    id: z.string(),
    object: z.literal('text_completion'),
    created: seconds,
    model: z.string(),
    choices: z.array(z.looseObject({ index: z.int(), text: z.string(), finish_reason: z.string().nullable() })),
    usage,
  }),
  EmbeddingList: list(
    z.looseObject({
      object: z.literal('embedding'),
      index: z.int(),
      embedding: z.union([z.array(z.number()), z.string().describe('Little-endian float32 as base64.')]),
    }),
  ),
  Images: z.looseObject({
    created: seconds,
    data: z.array(z.looseObject({ url: z.string().optional(), b64_json: z.string().optional() })),
    usage,
  }),
  Transcription: z.looseObject({ text: z.string() }),
  Response: response,
  ResponseDeleted: z.looseObject({ id: z.string(), object: z.string(), deleted: z.literal(true) }),
  ResponseItemPage: page(z.looseObject({ type: z.string() })),
  Message: z.looseObject({
    id: z.string(),
    type: z.literal('message'),
    role: z.literal('assistant'),
    model: z.string(),
    content: z.array(z.looseObject({ type: z.string() })),
    stop_reason: z.string().nullable(),
    usage: z.looseObject({ input_tokens: z.int(), output_tokens: z.int() }),
  }),
  TokenCount: z.looseObject({ input_tokens: z.int() }),
  Video: video,
  VideoPage: page(video),
  VideoDeleted: z.looseObject({ id: z.string(), object: z.literal('video.deleted'), deleted: z.literal(true) }),
  Model: z.union([model, anthropicModel]).describe('With an `anthropic-version` header in the shape of its API.'),
  ModelList: z
    .union([list(model), anthropicModels])
    .describe('With an `anthropic-version` header in the shape of its API.'),
  AnthropicError: anthropicError,
  EitherError: z.union([anthropicError, z.looseObject({ error: openAiError })]),
  /** Responses of the sign-in are better-auth's. */
  AuthAnswer: z.looseObject({}).nullable(),
} as const satisfies Record<string, z.ZodType>;

export type WireObjectName = keyof typeof wireObjects;
