import { z } from 'zod';

const text = z.looseObject({ type: z.literal('text'), text: z.string() });
const refusal = z.looseObject({ type: z.literal('refusal'), refusal: z.string() });
const image = z.looseObject({
  type: z.literal('image_url'),
  image_url: z.looseObject({ url: z.string().min(1), detail: z.string().optional() }),
});
const audio = z.looseObject({
  type: z.literal('input_audio'),
  input_audio: z.looseObject({ data: z.string(), format: z.string() }),
});
const file = z.looseObject({
  type: z.literal('file'),
  file: z.looseObject({
    filename: z.string().optional(),
    file_data: z.string().optional(),
    file_id: z.string().optional(),
  }),
});

/** Text as a string or as text parts: the content of every role except user and assistant. */
export const textContent = z.union([z.string(), z.array(z.discriminatedUnion('type', [text])).min(1)]);
const userContent = z.union([z.string(), z.array(z.discriminatedUnion('type', [text, image, audio, file])).min(1)]);
const assistantContent = z.union([z.string(), z.array(z.discriminatedUnion('type', [text, refusal])).min(1)]);

const toolCall = z.discriminatedUnion('type', [
  z.looseObject({
    id: z.string(),
    type: z.literal('function'),
    function: z.looseObject({ name: z.string(), arguments: z.string() }),
  }),
  z.looseObject({
    id: z.string(),
    type: z.literal('custom'),
    custom: z.looseObject({ name: z.string(), input: z.string() }),
  }),
]);

const name = z.string().optional();

const assistant = z
  .looseObject({
    role: z.literal('assistant'),
    // OpenAI writes null next to calls, and some vendors expect it.
    content: assistantContent.nullish(),
    refusal: z.string().optional(),
    name,
    audio: z.looseObject({ id: z.string() }).optional(),
    tool_calls: z.array(toolCall).optional(),
    function_call: z.looseObject({ name: z.string(), arguments: z.string() }).optional(),
  })
  .check(({ value, issues }) => {
    const content = value.content ?? value.refusal ?? value.audio ?? value.function_call;
    // An empty string counts: vendors do return empty answers.
    if (content != null || value.tool_calls?.length) return;
    issues.push({
      code: 'custom',
      path: ['content'],
      input: value,
      message: 'an assistant message must have content, unless it has tool calls, a refusal, audio or a function call',
    });
  });

/** One message of a chat, after OpenAI's `ChatCompletionRequestMessage`; its fields depend on its role. */
export const chatMessage = z.discriminatedUnion('role', [
  z.looseObject({ role: z.literal('system'), content: textContent, name }),
  z.looseObject({ role: z.literal('developer'), content: textContent, name }),
  z.looseObject({ role: z.literal('user'), content: userContent, name }),
  assistant,
  z.looseObject({ role: z.literal('tool'), content: textContent, tool_call_id: z.string() }),
  z.looseObject({ role: z.literal('function'), content: z.string().nullable(), name: z.string() }),
]);

export type ChatMessage = z.infer<typeof chatMessage>;
