import type { ChatFieldSupport } from '../catalogue/chat-fields.ts';
import { ownWire, type VendorRow } from './vendors.ts';

/** Made once for each row. */
const known = new WeakMap<VendorRow, { readonly support: ChatFieldSupport | undefined }>();

/** What becomes of a chat's fields at a vendor; undefined where all of them pass through. */
export function chatFieldSupport(row: VendorRow): ChatFieldSupport | undefined {
  let found = known.get(row);
  if (found === undefined) {
    found = { support: supportOf(row) };
    known.set(row, found);
  }
  return found.support;
}

/** Whether a vendor takes Anthropic's own words for how much to think, `thinking` and `output_config`, as they are. */
export function acceptsAnthropicFields(row: VendorRow): boolean {
  return chatFieldSupport(row)?.thinking === 'native';
}

function supportOf({ dialect, chat }: VendorRow): ChatFieldSupport | undefined {
  if (chat === undefined) return ownWire(dialect)?.chatFields;
  const mapped = Object.keys(chat.renamed ?? {}).map((field) => [field, 'translated'] as const);
  const dropped: ChatFieldSupport = chat.streamOptions === false ? { stream_options: 'ignored' } : {};
  return { ...dropped, ...chat.fields, ...Object.fromEntries(mapped) };
}
