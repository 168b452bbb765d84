import { withForeignSignatures } from '../foreign-signatures.ts';
import { withUserAtEnd } from '../user-at-end.ts';
import type { VendorCall } from '../vendor.ts';

/** The chat to send in place of one that Gemini refuses; undefined if there is none. */
export function requestAfterRefusal(error: unknown, call: VendorCall): string | undefined {
  return withForeignSignatures(error, call) ?? withUserAtEnd(error, call);
}
