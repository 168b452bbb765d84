import { performCompletion } from './perform-completion.ts';
import { methodOf, type Perform } from './performance.ts';

/** A chat completion, or a legacy one: both are jobs of the chat models. */
export const performChat: Perform = async (performance) => {
  const { endpoint, vendor, call, sink } = performance;
  return endpoint === 'completions' ? performCompletion(performance) : methodOf(vendor, 'chat')(call, sink);
};
