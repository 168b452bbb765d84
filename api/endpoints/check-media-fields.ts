import { callersName, type MediaCapability } from '../../shared/catalogue/media-fields.ts';
import { mediaFieldSupport } from '../../shared/vendors/media-field-support.ts';
import { checkGivenFields } from '../pipeline/check-given-fields.ts';
import type { Check } from '../pipeline/endpoint.ts';

/** What a request other than a chat asks for. */
export interface MediaFieldRequirements {
  /** See `givenMediaFields`. */
  readonly mediaFields: readonly string[];
}

/**
 * A capability's own check, and behind it that of the request's fields against the vendor of the route: those that its
 * adapter leaves out are named, and those whose absence would change the answer are refused.
 */
export function withFieldCheck<Requirements extends MediaFieldRequirements>(
  capability: MediaCapability,
  check: Check<Requirements>,
): Check<Requirements> {
  return (request, model, unsupported = 'refuse') => {
    const ignored = check(request, model, unsupported) ?? [];
    const target = { dialect: model.vendorRow.dialect, capability, model: model.route.model };
    const fields = request.requirements.mediaFields.map((field) => ({
      name: callersName(field),
      support: mediaFieldSupport(target, field),
    }));
    return [...ignored, ...checkGivenFields(fields, model.id, unsupported)];
  };
}
