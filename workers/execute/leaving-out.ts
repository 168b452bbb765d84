import type { RoutedModel } from '../../shared/catalogue/catalogue.ts';
import { givenMediaFields, type MediaCapability, withoutMediaFields } from '../../shared/catalogue/media-fields.ts';
import { mediaFieldSupport } from '../../shared/vendors/field-support.ts';
import { requestText } from '../vendors/request-body.ts';
import type { VendorCall } from '../vendors/vendor.ts';
import type { Execution } from './execution.ts';

/** Wraps `execute` for callers who prefer an answer without the fields that the vendor rejects: they are removed. */
export function leavingOut<Asked extends Execution, Answer>(
  capability: MediaCapability,
  execute: (asked: Asked) => Answer,
): (asked: Asked) => Answer {
  return (asked) => {
    if (!asked.dropsUnsupported) return execute(asked);
    const { row, call } = asked;
    return execute({ ...asked, call: { ...call, ...withoutRefused(capability, row, call) } });
  };
}

type Request = Pick<VendorCall, 'request' | 'uploads'>;

function withoutRefused(
  capability: MediaCapability,
  { vendorRow, route }: RoutedModel,
  { request, uploads }: Request,
): Request {
  const target = { row: vendorRow, capability, model: route.model };
  const job = JSON.parse(requestText(request)) as Record<string, unknown>;
  const given = uploads.some(({ field }) => field === 'mask') ? { ...job, mask: true } : job;
  const refused = givenMediaFields(capability, given).filter(
    (field) => mediaFieldSupport(target, field) === 'rejected',
  );
  if (refused.length === 0) return { request, uploads };
  return {
    request: JSON.stringify(withoutMediaFields(capability, job, refused)),
    uploads: uploads.filter(({ field }) => !refused.includes(field)),
  };
}
