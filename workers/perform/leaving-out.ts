import type { RoutedModel } from '../../shared/catalogue/catalogue.ts';
import { mediaFieldFate } from '../../shared/catalogue/media-field-fates.ts';
import { givenMediaFields, type MediaCapability, withoutMediaFields } from '../../shared/catalogue/media-fields.ts';
import type { Performance } from './performance.ts';

/**
 * The same work for callers who would rather have an answer without the fields that its vendor refuses: it goes without
 * them.
 */
export function leavingOut<Asked extends Performance, Answer>(
  capability: MediaCapability,
  perform: (asked: Asked) => Answer,
): (asked: Asked) => Answer {
  return (asked) => {
    if (!asked.dropsUnsupported) return perform(asked);
    const { row, call } = asked;
    return perform({ ...asked, call: { ...call, request: withoutRefused(capability, row, call.request) } });
  };
}

function withoutRefused(capability: MediaCapability, { vendorRow, route }: RoutedModel, request: string): string {
  const target = { dialect: vendorRow.dialect, capability, model: route.model };
  const job = JSON.parse(request) as Record<string, unknown>;
  const refused = givenMediaFields(capability, job).filter((field) => mediaFieldFate(target, field) === 'refused');
  return refused.length === 0 ? request : JSON.stringify(withoutMediaFields(capability, job, refused));
}
