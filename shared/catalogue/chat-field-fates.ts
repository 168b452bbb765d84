import { anthropicChatFields } from './anthropic-chat-fields.ts';
import type { ChatFieldFates } from './chat-fields.ts';
import { geminiChatFields } from './gemini-chat-fields.ts';
import { type Dialect, type VendorRow, vendorRows } from './vendors.ts';

/** Fates at the vendors that a chat is translated for. */
const translated: Partial<Record<Dialect, ChatFieldFates>> = {
  anthropic: anthropicChatFields,
  gemini: { '*': 'refused', ...geminiChatFields },
};

const fatesByVendor = new Map(vendorRows.map((row) => [row.name, fatesOf(row)]));

function fatesOf({ dialect, chat }: VendorRow): ChatFieldFates | undefined {
  if (chat === undefined) return translated[dialect];
  const mapped = Object.keys(chat.renamed ?? {}).map((field) => [field, 'mapped'] as const);
  const dropped: ChatFieldFates = chat.streamOptions === false ? { stream_options: 'dropped' } : {};
  return { ...dropped, ...chat.fields, ...Object.fromEntries(mapped) };
}

/** What becomes of a chat's fields at a vendor; undefined where all of them pass through. */
export function chatFieldFates(vendor: string): ChatFieldFates | undefined {
  return fatesByVendor.get(vendor);
}
