import { anthropicChatFields } from './anthropic-chat-fields.ts';
import { bedrockChatFields } from './bedrock-chat-fields.ts';
import type { ChatFieldFates } from './chat-fields.ts';
import { geminiChatFields } from './gemini-chat-fields.ts';
import type { Dialect, VendorRow } from './vendors.ts';

/** Fates at the vendors that a chat is translated for. */
const translated: Partial<Record<Dialect, ChatFieldFates>> = {
  anthropic: anthropicChatFields,
  bedrock: bedrockChatFields,
  gemini: geminiChatFields,
};

/** Made once for each row. */
const known = new WeakMap<VendorRow, { readonly fates: ChatFieldFates | undefined }>();

/** What becomes of a chat's fields at a vendor; undefined where all of them pass through. */
export function chatFieldFates(row: VendorRow): ChatFieldFates | undefined {
  let found = known.get(row);
  if (found === undefined) {
    found = { fates: fatesOf(row) };
    known.set(row, found);
  }
  return found.fates;
}

/** Whether a vendor takes Anthropic's own words for how much to think, `thinking` and `output_config`, as they are. */
export function takesAnthropicWords(row: VendorRow): boolean {
  return chatFieldFates(row)?.thinking === 'kept';
}

function fatesOf({ dialect, chat }: VendorRow): ChatFieldFates | undefined {
  if (chat === undefined) return translated[dialect];
  const mapped = Object.keys(chat.renamed ?? {}).map((field) => [field, 'mapped'] as const);
  const dropped: ChatFieldFates = chat.streamOptions === false ? { stream_options: 'dropped' } : {};
  return { ...dropped, ...chat.fields, ...Object.fromEntries(mapped) };
}
