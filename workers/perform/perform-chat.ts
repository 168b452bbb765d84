import { droppingRefused } from './dropping-refused.ts';
import { performCompletion } from './perform-completion.ts';
import { performMessage, performTokenCount } from './perform-message.ts';
import { performResponse } from './perform-response.ts';
import { methodOf, type Perform } from './performance.ts';

/** A chat completion, a legacy one, a response, a message or its count: all are jobs of the chat models. */
export const performChat: Perform = async (asked) => {
  const performance = asked.dropsUnsupported
    ? { ...asked, vendor: droppingRefused(asked.vendor, asked.row.vendorRow) }
    : asked;
  const { endpoint, vendor, call, sink } = performance;
  if (endpoint === 'completions') return await performCompletion(performance);
  if (endpoint === 'responses') return await performResponse(performance);
  if (endpoint === 'messages') return await performMessage(performance);
  if (endpoint === 'messages.count_tokens') return await performTokenCount(performance);
  return await methodOf(vendor, 'chat')(call, sink);
};
