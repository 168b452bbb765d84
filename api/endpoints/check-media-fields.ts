import { mediaFieldSupport } from '../../shared/catalogue/media-field-support.ts';
import { callersName, type MediaCapability } from '../../shared/catalogue/media-fields.ts';
import { checkGivenFields } from '../pipeline/check-given-fields.ts';
import type { Endpoint } from '../pipeline/endpoint.ts';

/** What a request other than a chat asks for. */
interface MediaFieldTraits {
  /** See `givenMediaFields`. */
  readonly mediaFields: readonly string[];
}

type Check = NonNullable<Endpoint['check']>;

/**
 * A capability's own check, and behind it that of the request's fields against the vendor of the route: those that its
 * adapter leaves out are named, and those whose absence would change the answer are refused.
 */
export function withFieldCheck(capability: MediaCapability, check: Check): Check {
  return (request, model, unsupported = 'refuse') => {
    const ignored = check(request, model, unsupported) ?? [];
    const { mediaFields } = request.traits as unknown as MediaFieldTraits;
    const target = { dialect: model.vendorRow.dialect, capability, model: model.route.model };
    const fields = mediaFields.map((field) => ({
      name: callersName(field),
      support: mediaFieldSupport(target, field),
    }));
    return [...ignored, ...checkGivenFields(fields, model.id, unsupported)];
  };
}
