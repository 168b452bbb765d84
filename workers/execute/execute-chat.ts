import { droppingRefused } from './dropping-refused.ts';
import { executeCompletion } from './execute-completion.ts';
import { executeMessage, executeTokenCount } from './execute-message.ts';
import { executeResponse } from './execute-response.ts';
import { type Execute, methodOf } from './execution.ts';

/** A chat completion, a legacy one, a response, a message or its token count: all are jobs of the chat models. */
export const executeChat: Execute = async (asked) => {
  const execution = asked.dropsUnsupported
    ? { ...asked, vendor: droppingRefused(asked.vendor, asked.row.vendorRow) }
    : asked;
  const { endpoint, vendor, call, sink } = execution;
  if (endpoint === 'completions') return await executeCompletion(execution);
  if (endpoint === 'responses') return await executeResponse(execution);
  if (endpoint === 'messages') return await executeMessage(execution);
  if (endpoint === 'messages.count_tokens') return await executeTokenCount(execution);
  return await methodOf(vendor, 'chat')(call, sink);
};
