import { TokenCounter } from '../usage/token-counter.ts';
import { requestText } from '../vendors/request-body.ts';
import { type Execute, methodOf } from './execution.ts';
import { toVendorsMessage } from './message-names.ts';
import { withoutHints } from './without-hints.ts';

const counter = new TokenCounter();

/** A message: a chat without the fields that its vendor or model would refuse. */
export const executeMessage: Execute = ({ vendor, row, call, sink }) => {
  const request = toVendorsMessage(withoutHints(requestText(call.request), row), row);
  return methodOf(vendor, 'chat')({ ...call, request }, sink);
};

/** The count of a message's input tokens: the vendor's own if it offers one, else an estimate. */
export const executeTokenCount: Execute = async ({ vendor, row, call, sink }) => {
  const request = toVendorsMessage(withoutHints(requestText(call.request), row), row);
  if (vendor.countTokens !== undefined) return await vendor.countTokens({ ...call, request }, sink);
  const tokens = await counter.count(request, call.signal);
  return { body: JSON.stringify({ input_tokens: tokens }), usage: null };
};
