import { parseExact, stringifyExact } from '../../shared/capabilities/exact-json.ts';
import type { RoutedModel } from '../../shared/catalogue/catalogue.ts';
import { givenChatFields, modelFieldSupport, supportOf } from '../../shared/vendors/field-support.ts';
import type { ChatFieldSupport } from '../../shared/vendors/vendor-description.ts';
import { requestText } from '../vendors/request-body.ts';
import type { Vendor } from '../vendors/vendor.ts';

/** Wraps the vendor for callers who prefer an answer without the fields that it, or the model, rejects: they are removed from its chats. */
export function droppingRefused(
  vendor: Vendor,
  { vendorRow, route }: Pick<RoutedModel, 'vendorRow' | 'route'>,
): Vendor {
  const { chat } = vendor;
  const support = modelFieldSupport(vendorRow, route.model);
  if (chat === undefined || support === undefined) return vendor;
  return {
    ...vendor,
    chat: async (call, sink) => {
      const answer = await chat({ ...call, request: withoutRefused(requestText(call.request), support) }, sink);
      // A vendor that was not asked for the caller's tier, and names none, has used its own.
      const isTierDropped = supportOf(support, 'service_tier') === 'rejected';
      return isTierDropped && answer.tier == null ? { ...answer, tier: 'default' } : answer;
    },
  };
}

function withoutRefused(request: string, support: ChatFieldSupport): string {
  const chat = parseExact(request) as Record<string, unknown>;
  for (const field of givenChatFields(chat)) {
    if (supportOf(support, field) === 'rejected') delete chat[field.split('.', 1)[0] as string];
  }
  return stringifyExact(chat);
}
