import type { ResponseJob } from '../../shared/capabilities/response.ts';
import type { VendorAnswer } from '../vendors/vendor.ts';
import { methodOf, type Perform, type Performance } from './performance.ts';
import { toChatRequest } from './response-as-chat.ts';
import { withoutHintsInTurns } from './without-hints.ts';

/**
 * A response: the vendor's own where the model has the Responses API, else a chat, whose frames are passed as they are. The
 * end says when it came (`completed_at`).
 */
export const performResponse: Perform = async (performance) => {
  const { body, usage } = await respond(performance);
  const now = Math.floor(Date.now() / 1000);
  // Put before the first field: an answer that was held may be megabytes.
  return { body: `{"completed_at":${now},${body.slice(1)}`, usage };
};

async function respond({ vendor, row, call, sink }: Performance): Promise<VendorAnswer> {
  if (row.responses) return await methodOf(vendor, 'respond')(call, sink);
  const request = withoutHintsInTurns(toChatRequest(JSON.parse(call.request) as ResponseJob), row);
  return await methodOf(vendor, 'chat')({ ...call, request }, sink);
}
