import type { ResponseJob } from '../../shared/capabilities/response.ts';
import { ApiError } from '../../shared/errors.ts';
import { requestText } from '../vendors/request-body.ts';
import type { VendorAnswer } from '../vendors/vendor.ts';
import { type Execute, type Execution, methodOf } from './execution.ts';
import { toChatRequest } from './response-as-chat.ts';
import { withoutHintsInTurns } from './without-hints.ts';

/**
 * A response: the vendor's own if the model has the Responses API, else a chat, whose frames pass unchanged. The end contains its
 * time (`completed_at`).
 */
export const executeResponse: Execute = async (execution) => {
  const { body, ...rest } = await respond(execution);
  const now = Math.floor(Date.now() / 1000);
  // Put before the first field: a buffered answer may be megabytes.
  return { body: `{"completed_at":${now},${body.slice(1)}`, ...rest };
};

async function respond({ vendor, row, call, sink }: Execution): Promise<VendorAnswer> {
  if (row.responses) return await methodOf(vendor, 'respond')(call, sink);
  const request = withoutHintsInTurns(toChatRequest(JSON.parse(requestText(call.request)) as ResponseJob), row);
  try {
    return await methodOf(vendor, 'chat')({ ...call, request }, sink);
  } catch (error) {
    throw error instanceof ApiError ? inResponseTerms(error) : error;
  }
}

/** The names of a chat's fields in a response, if they differ. */
const responseNames = new Map([
  ['messages', 'input'],
  ['max_completion_tokens', 'max_output_tokens'],
  ['max_tokens', 'max_output_tokens'],
  ['response_format', 'text.format'],
  ['verbosity', 'text.verbosity'],
  ['reasoning_effort', 'reasoning.effort'],
]);

/** A vendor's error names a field of the chat, which the caller has not sent: it is renamed to the caller's own. */
function inResponseTerms(error: ApiError): ApiError {
  const { code, param, vendorCode, vendorStatus, cause } = error;
  const [chatName = ''] = param?.split(/[.[]/, 1) ?? [];
  const name = responseNames.get(chatName);
  if (param === null || name === undefined || error.status !== 400) return error;
  const message = error.message.replaceAll(`'${param}'`, `'${name}'`).replaceAll(`'${chatName}'`, `'${name}'`);
  return new ApiError(code, message, { param: name, vendorCode, ...(vendorStatus && { vendorStatus }), cause });
}
