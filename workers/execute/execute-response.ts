import { parseExact } from '../../shared/capabilities/exact-json.ts';
import type { ResponseJob } from '../../shared/capabilities/response.ts';
import { requestText } from '../vendors/request-body.ts';
import type { VendorAnswer } from '../vendors/vendor.ts';
import { inCallersNames } from './callers-names.ts';
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
  const request = withoutHintsInTurns(toChatRequest(parseExact(requestText(call.request)) as ResponseJob), row);
  try {
    return await methodOf(vendor, 'chat')({ ...call, request }, sink);
  } catch (error) {
    throw inCallersNames(error, responseNames);
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
