import { callersName, type MediaCapability } from '../../shared/catalogue/media-fields.ts';
import { mediaFieldSupport } from '../../shared/vendors/field-support.ts';
import { checkGivenFields } from '../pipeline/check-given-fields.ts';
import type { Check } from '../pipeline/endpoint.ts';

/** The fields of a request other than a chat. */
export interface MediaFieldRequirements {
  /** See `givenMediaFields`. */
  readonly mediaFields: readonly string[];
}

/**
 * Adds a check of the request's fields to a capability's own. Fields that the vendor's adapter omits are returned; those
 * whose absence would change the answer are refused.
 */
export function withFieldCheck<Requirements extends MediaFieldRequirements>(
  capability: MediaCapability,
  check: Check<Requirements>,
): Check<Requirements> {
  return (request, model, unsupported = 'refuse') => {
    const ignored = check(request, model, unsupported) ?? [];
    const target = { row: model.vendorRow, capability, model: model.route.model };
    const fields = request.requirements.mediaFields.map((field) => ({
      name: callersName(field),
      support: mediaFieldSupport(target, field),
    }));
    return [...ignored, ...checkGivenFields(fields, model.id, unsupported)];
  };
}
