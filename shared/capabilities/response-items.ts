import { z } from 'zod';
import { compiledOnUse } from './compiled-on-use.ts';
import { byTypeName, dispatched } from './dispatched.ts';

const text = z.looseObject({ type: z.literal('input_text'), text: z.string() });
const image = z
  .looseObject({
    type: z.literal('input_image'),
    image_url: z.string().min(1).nullish(),
    file_id: z.string().nullish(),
    detail: z.string().nullish(),
  })
  .refine(({ image_url: url, file_id: id }) => url != null || id != null, 'it needs an image_url or a file_id');
const file = z
  .looseObject({
    type: z.literal('input_file'),
    file_id: z.string().nullish(),
    file_data: z.string().nullish(),
    file_url: z.string().nullish(),
    filename: z.string().nullish(),
  })
  .refine(
    (part) => part.file_id != null || part.file_data != null || part.file_url != null,
    'it needs file_data, a file_url or a file_id',
  );
// From chats, not in OpenAI's reference for this API; some vendors' models accept audio all the same.
const audio = z.looseObject({
  type: z.literal('input_audio'),
  input_audio: z.looseObject({ data: z.string(), format: z.string() }),
});
const outputText = z.looseObject({ type: z.literal('output_text'), text: z.string() });
const refusal = z.looseObject({ type: z.literal('refusal'), refusal: z.string() });

const inputPart = z.discriminatedUnion('type', [text, image, file, audio]);
// Callers send a model's output back as received, or as plain text.
const assistantPart = z.discriminatedUnion('type', [outputText, refusal, text]);
const inputContent = z.union([z.string(), z.array(inputPart)]);

// In OpenAI's reference a message needs no type.
const messageType = z.literal('message').nullish();
const message = compiledOnUse(
  z.discriminatedUnion('role', [
    z.looseObject({ type: messageType, role: z.literal('user'), content: inputContent }),
    z.looseObject({ type: messageType, role: z.literal('system'), content: inputContent }),
    z.looseObject({ type: messageType, role: z.literal('developer'), content: inputContent }),
    z.looseObject({
      type: messageType,
      role: z.literal('assistant'),
      content: z.union([z.string(), z.array(assistantPart)]),
    }),
  ]),
);

/** Characters of a call's id, at most. */
export const maxCallId = 64;

const callId = z.string().min(1).max(maxCallId);
const toolOutput = z.union([z.string(), z.array(inputPart)]);
const call = { call_id: callId, name: z.string().min(1), namespace: z.string().nullish() };
const texts = z.array(z.looseObject({ type: z.string(), text: z.string() }));
const reference = compiledOnUse(z.looseObject({ id: z.string().min(1) }));

/** The types that a chat supports, too: a vendor without the Responses API needs them to be valid. */
const itemOfType = byTypeName({
  message,
  function_call: compiledOnUse(z.looseObject({ ...call, arguments: z.string() })),
  function_call_output: compiledOnUse(z.looseObject({ call_id: callId, output: toolOutput })),
  custom_tool_call: compiledOnUse(z.looseObject({ ...call, input: z.string() })),
  custom_tool_call_output: compiledOnUse(z.looseObject({ call_id: callId, output: toolOutput })),
  reasoning: compiledOnUse(
    z.looseObject({ summary: texts, content: texts.nullish(), encrypted_content: z.string().nullish() }),
  ),
  item_reference: reference,
});

/** Items of hosted tools and other vendor features; a vendor that has them knows their fields. */
const otherItem = compiledOnUse(z.looseObject({ type: z.string().min(1).max(64) }));

/** An item of a request; its fields depend on its type. */
export interface RequestItem {
  readonly type?: string | null;
  readonly role?: string;
  readonly id?: string | null;
  readonly [field: string]: unknown;
}

/**
 * One item of a request's `input`, after OpenAI's `InputItem`. Undocumented types are accepted, because agents send them. An
 * item without a type is a message, or (with an id and no role) a reference.
 */
export const responseItem = dispatched<RequestItem>(({ type, role, id }) => {
  if (type != null) return itemOfType(type) ?? otherItem;
  return role === undefined && id !== undefined ? reference : message;
}).check(({ value, issues }) => {
  // Searches for media, images and files read the parts of every item, including unknown types.
  for (const name of ['content', 'output']) {
    const parts = value[name];
    const index = Array.isArray(parts) ? parts.findIndex((part) => typeof part !== 'object' || part === null) : -1;
    if (index < 0) continue;
    issues.push({ code: 'custom', input: value, path: [name, index], message: 'a part must be an object' });
  }
});
