import { chatFieldFates } from '../../shared/catalogue/chat-field-fates.ts';
import { type ChatFieldFates, fateOf, givenChatFields } from '../../shared/catalogue/chat-fields.ts';
import type { VendorRow } from '../../shared/catalogue/vendors.ts';
import type { Vendor } from '../vendors/vendor.ts';

/** The vendor for callers who would rather have an answer without the fields that it refuses: its chats go without them. */
export function droppingRefused(vendor: Vendor, row: VendorRow): Vendor {
  const { chat } = vendor;
  const fates = chatFieldFates(row);
  if (chat === undefined || fates === undefined) return vendor;
  return { ...vendor, chat: (call, sink) => chat({ ...call, request: withoutRefused(call.request, fates) }, sink) };
}

function withoutRefused(request: string, fates: ChatFieldFates): string {
  const chat = JSON.parse(request) as Record<string, unknown>;
  for (const field of givenChatFields(chat)) {
    if (fateOf(fates, field) === 'refused') delete chat[field.split('.', 1)[0] as string];
  }
  return JSON.stringify(chat);
}
