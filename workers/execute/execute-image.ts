import { requestText } from '../vendors/request-body.ts';
import type { AnswerBody } from '../vendors/vendor.ts';
import { type Execute, methodOf } from './execution.ts';

/** Makes images by one call: a creation is never repeated. The row determines which fields the vendor takes. */
export const executeImage: Execute<AnswerBody> = ({ vendor, row, call, sink }) => {
  const takes = row.image?.responseFormat ?? false;
  // Put before the first field, because the request may hold megabytes of images.
  const request = `{"takes_response_format":${takes},${requestText(call.request).slice(1)}`;
  return methodOf(vendor, 'image')({ ...call, request }, sink);
};
