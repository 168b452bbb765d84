import { ApiError } from '../../../shared/errors.ts';
import type { ChatDeviations } from '../../../shared/vendors/vendor-description.ts';
import type { HttpClient } from '../../http/http-client.ts';
import { requestText, wantsOneCall } from '../request-body.ts';
import { isObject, type JsonObject } from '../support/json-object.ts';
import { withUserAtEnd } from '../user-at-end.ts';
import type { VendorCall, VendorMethod } from '../vendor.ts';
import type { OpenAiAnswerReader } from './answer-reader.ts';
import { adaptAnswer } from './chat-answer.ts';
import {
  adaptRequest,
  withLowestEffort,
  withoutEffort,
  withoutLongIds,
  withoutNone,
  withoutOddNames,
} from './chat-request.ts';
import { type CompletionKind, completionMethod } from './completion-method.ts';
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

/**
 * The words by which Zhipu and Moonshot refuse that a model that always thinks is told not to. Their documents do not say of which
 * models that is true.
 */
const alwaysThinks = /不支持关闭思考|\bonly type=enabled is allowed for this model\b/;

/** The words by which DashScope and SiliconFlow refuse their own switch: with models that always think, or never. */
const hasNoSwitch = /enable_thinking parameter is restricted to True|does not support parameter `?enable_thinking/;

/**
 * The request that a vendor takes in place of one that it refuses for what the caller has not asked for, for its effort `none`, or for
 * ending with an answer.
 */
function requestAfterRefusal(error: unknown, call: VendorCall): string | undefined {
  const { request, isEffortTranslated } = call;
  if (!(error instanceof ApiError)) return undefined;
  // OpenAI refuses some of the ids by which other vendors have named a conversation's calls, and of the names by which models call tools.
  if (isOfLongId(error)) return withoutLongIds(requestText(request));
  if (isOfName(error)) return withoutOddNames(requestText(request));
  if (alwaysThinks.test(error.message)) return withLowestEffort(requestText(request));
  if (hasNoSwitch.test(error.message)) return withoutNone(requestText(request));
  // Some of OpenAI's models take tools only if they do not reason, which they do unasked.
  if (isOfEffort(error)) return withoutEffort(requestText(request), isEffortTranslated === true);
  return withUserAtEnd(error, call);
}

function isOfLongId({ vendorCode, param }: ApiError): boolean {
  if (vendorCode !== 'string_above_max_length') return false;
  return /\.(tool_calls\[\d+\]\.id|tool_call_id)$/.test(param ?? '');
}

function isOfName({ param }: ApiError): boolean {
  return /\.tool_calls\[\d+\]\.function\.name$/.test(param ?? '');
}

function isOfEffort({ param, message }: ApiError): boolean {
  return param === 'reasoning_effort' && message.startsWith('Function tools with reasoning_effort are not supported');
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
