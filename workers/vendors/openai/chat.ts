import type { ChatDeviations } from '../../../shared/vendors/vendor-description.ts';
import type { HttpClient } from '../../http/http-client.ts';
import { wantsOneCall } from '../request-body.ts';
import { isObject, type JsonObject } from '../support/json-object.ts';
import type { VendorMethod } from '../vendor.ts';
import type { OpenAiAnswerReader } from './answer-reader.ts';
import { adaptAnswer } from './chat-answer.ts';
import { adaptRequest } from './chat-request.ts';
import { type CompletionKind, completionMethod } from './completion-method.ts';
import { requestAfterRefusal } from './refusals.ts';
import { chatShape } from './shape.ts';

/** Chat completions (https://platform.openai.com/docs/api-reference/chat), with a vendor's deviations from them. */
export function openAiChat(
  http: HttpClient,
  answerReader: OpenAiAnswerReader,
  deviations: ChatDeviations = {},
): VendorMethod {
  return completionMethod(http, answerReader, {
    path: '/chat/completions',
    toChunkChoice,
    hasToken: ({ delta }) => isObject(delta) && typeof delta.content === 'string' && !hasCalls(delta),
    adaptRequest: adaptRequest(deviations),
    shapeFor: shapeFor(deviations),
    asksUsage: deviations.streamOptions !== false,
    afterRefusal: requestAfterRefusal,
  });
}

function shapeFor(deviations: ChatDeviations): CompletionKind['shapeFor'] {
  const adapt = adaptAnswer(deviations);
  const shape = chatShape(adapt);
  if (deviations.parallelToolCalls !== false) return () => shape;
  const ofOneCall = chatShape(adapt, true);
  return (request) => (wantsOneCall(request) ? ofOneCall : shape);
}

/** The message as a single delta. */
function toChunkChoice({ message, ...rest }: JsonObject): JsonObject | undefined {
  if (!isObject(message)) return undefined;
  const calls = message.tool_calls;
  const toolCalls = Array.isArray(calls) ? { tool_calls: calls.map((call, index) => ({ ...call, index })) } : {};
  return { ...rest, delta: { ...message, ...toolCalls } };
}

function hasCalls({ tool_calls: calls }: JsonObject): boolean {
  return Array.isArray(calls) && calls.length > 0;
}
