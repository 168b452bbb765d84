import { stringifyExact } from '../../../shared/capabilities/exact-json.ts';
import { extraContent } from '../../../shared/capabilities/thought-signature.ts';
import { numberOf, textOf } from '../../../shared/capabilities/vendor-values.ts';
import { ApiError } from '../../../shared/errors.ts';
import { tierName } from '../../../shared/money/service-tier.ts';
import { isObject, type JsonObject } from '../support/json-object.ts';
import type { VendorUsage } from '../vendor.ts';
import { PartialCall, type WholeCall } from './partial-call.ts';

/** One candidate of a (partial) answer, in the fields of a chat's choice. */
export interface CandidateFields {
  readonly index: number;
  /** `content`, `reasoning_content`, `tool_calls` and `extra_content`, as far as present. */
  readonly fields: JsonObject;
  readonly calls: number;
  readonly logprobs: JsonObject | null;
  /** The reason as Gemini gives it; null while the candidate continues. */
  readonly finish: string | null;
}

/** What a candidate is a part of. */
interface CandidateContext {
  /** Number of its choice's earlier calls. */
  readonly callsBefore: number;
  /** Maximum number of its choice's calls; those beyond it are left out. */
  readonly maxCalls: number;
  /** Basis of ids for calls without one. */
  readonly responseId: string;
  /** The caller's names of tools by Gemini's, where these differ. */
  readonly names: ReadonlyMap<string, string>;
}

/**
 * Reads a candidate (https://ai.google.dev/api/generate-content#candidate).
 * @param partial the call whose arguments come in pieces; it outlives the candidate in a stream.
 * @throws ApiError for anything but a candidate.
 */
export function readCandidate(
  candidate: unknown,
  { callsBefore, maxCalls, responseId, names }: CandidateContext,
  partial = new PartialCall(),
): CandidateFields {
  if (!isObject(candidate)) throw unusable();
  const index = candidate.index ?? 0;
  const { parts = [] } = isObject(candidate.content) ? candidate.content : {};
  if (typeof index !== 'number' || !Array.isArray(parts)) throw unusable();
  const [texts, thoughts, calls]: [string[], string[], JsonObject[]] = [[], [], []];
  let signature: unknown;
  for (const part of parts) {
    if (!isObject(part)) throw unusable();
    if (isObject(part.functionCall)) {
      const whole = partial.take(part);
      const number = callsBefore + calls.length;
      const ownId = `${responseId}_${index}_${number}`;
      if (whole !== undefined && number < maxCalls) calls.push(toToolCall(whole, ownId, names));
      continue;
    }
    signature = part.thoughtSignature ?? signature;
    if (typeof part.text === 'string' && part.text !== '') (part.thought === true ? thoughts : texts).push(part.text);
  }
  const fields: JsonObject = {
    ...(thoughts.length > 0 && { reasoning_content: thoughts.join('') }),
    ...(texts.length > 0 && { content: texts.join('') }),
    ...(calls.length > 0 && { tool_calls: calls }),
    ...signed(signature),
  };
  const { finishReason: finish } = candidate;
  // A call without its end is no call, and an answer without it not the whole one.
  if (finish === 'STOP' && partial.isOpen) throw unusable();
  const logprobs = toLogprobs(candidate.logprobsResult);
  return { index, fields, calls: calls.length, logprobs, finish: typeof finish === 'string' ? finish : null };
}

function unusable(): ApiError {
  return new ApiError('server_error', "The model's vendor answered with a candidate of an unknown shape.");
}

function toToolCall(
  { call: { id, name, args }, signature }: WholeCall,
  ownId: string,
  names: CandidateContext['names'],
): JsonObject {
  return {
    id: typeof id === 'string' && id !== '' ? id : `call_${ownId}`,
    type: 'function',
    function: { name: names.get(String(name)) ?? String(name), arguments: stringifyExact(args ?? {}) },
    ...signed(signature),
  };
}

function signed(signature: unknown): JsonObject {
  return typeof signature === 'string' && signature !== '' ? extraContent(signature) : {};
}

/** `logprobsResult` as OpenAI's `logprobs` (https://ai.google.dev/api/generate-content#LogprobsResult). */
function toLogprobs(result: unknown): JsonObject | null {
  if (!isObject(result) || !Array.isArray(result.chosenCandidates)) return null;
  const tops = Array.isArray(result.topCandidates) ? result.topCandidates : [];
  const content = result.chosenCandidates.filter(isObject).map((chosen, position) => {
    const { candidates = [] } = isObject(tops[position]) ? tops[position] : {};
    const top = Array.isArray(candidates) ? candidates.filter(isObject).map(toLogprob) : [];
    return { ...toLogprob(chosen), top_logprobs: top };
  });
  return { content, refusal: null };
}

function toLogprob({ token, logProbability }: JsonObject): JsonObject {
  const text = textOf(token);
  return { token: text, logprob: numberOf(logProbability), bytes: [...Buffer.from(text)] };
}

const badCalls = new Set(['MALFORMED_FUNCTION_CALL', 'UNEXPECTED_TOOL_CALL', 'TOO_MANY_TOOL_CALLS']);
/** Failures of the model or of the conversation, which no filter has caused. */
const failures = new Set(['MALFORMED_RESPONSE', 'MISSING_THOUGHT_SIGNATURE']);
/** A call of an undeclared tool, which the client must refuse; OpenAI's models make such calls, too. */
const undeclared = 'UNEXPECTED_TOOL_CALL';

/**
 * The finish reason of a choice. Anything but a natural end or a limit (SAFETY, RECITATION, BLOCKLIST, PROHIBITED_CONTENT, SPII,
 * LANGUAGE, OTHER and future ones) is `content_filter`: the vendor truncated the answer.
 * @throws ApiError for a malformed call or answer: there is none then.
 */
export function toFinishReason(finish: string, hasCalls: boolean): string {
  if (finish === undeclared && hasCalls) return 'tool_calls';
  if (badCalls.has(finish)) {
    throw new ApiError('server_error', `The model made a tool call that cannot be used (${finish}).`);
  }
  if (failures.has(finish))
    throw new ApiError('server_error', `The model made no answer that can be used (${finish}).`);
  if (finish === 'STOP') return hasCalls ? 'tool_calls' : 'stop';
  return finish === 'MAX_TOKENS' ? 'length' : 'content_filter';
}

/** Whether Gemini refused the prompt itself: then there are no candidates. */
export function isBlocked({ promptFeedback: feedback }: JsonObject): boolean {
  return isObject(feedback) && typeof feedback.blockReason === 'string';
}

/** Vertex AI's names of what a request is billed as (https://cloud.google.com/vertex-ai/generative-ai/docs/reference/rest/v1/TrafficType). */
const trafficTiers: ReadonlyMap<unknown, string> = new Map([
  ['ON_DEMAND', 'default'],
  ['ON_DEMAND_FLEX', 'flex'],
  ['ON_DEMAND_PRIORITY', 'priority'],
]);

/**
 * The service tier of an answer, as a field of a chat's body or chunk: Gemini names it in `usageMetadata.serviceTier`
 * (https://ai.google.dev/gemini-api/docs/optimization), Vertex AI in `trafficType`.
 */
export function toTier(metadata: unknown): JsonObject {
  if (!isObject(metadata)) return {};
  const { serviceTier, trafficType } = metadata;
  const tier = tierName(serviceTier)?.toLowerCase() ?? trafficTiers.get(trafficType);
  return tier === undefined || tier.endsWith('unspecified')
    ? {}
    : { service_tier: tier === 'standard' ? 'default' : tier };
}

/** `usageMetadata` as OpenAI's usage (https://ai.google.dev/api/generate-content#UsageMetadata); null if it is missing or counts nothing: Vertex AI's first events have a traffic type alone. */
export function toUsage(metadata: unknown): VendorUsage {
  if (!isObject(metadata)) return null;
  const isCounted = ['promptTokenCount', 'candidatesTokenCount', 'totalTokenCount'].some(
    (name) => typeof metadata[name] === 'number',
  );
  if (!isCounted) return null;
  const count = (name: string): number => (typeof metadata[name] === 'number' ? metadata[name] : 0);
  const prompt = count('promptTokenCount') + count('toolUsePromptTokenCount');
  const thoughts = count('thoughtsTokenCount');
  const completion = count('candidatesTokenCount') + thoughts;
  return {
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: count('totalTokenCount') || prompt + completion,
    prompt_tokens_details: {
      cached_tokens: count('cachedContentTokenCount'),
      ...countOf('AUDIO', metadata.promptTokensDetails, 'audio_tokens'),
    },
    completion_tokens_details: {
      reasoning_tokens: thoughts,
      ...countOf('IMAGE', metadata.candidatesTokensDetails, 'image_tokens'),
    },
  };
}

/** The tokens of a modality that has a price of its own, as a field of OpenAI's details; empty if there are none. */
function countOf(modality: string, details: unknown, name: string): JsonObject {
  const counts = Array.isArray(details) ? details.filter(isObject).filter((each) => each.modality === modality) : [];
  const tokens = counts.reduce((sum, { tokenCount }) => sum + (typeof tokenCount === 'number' ? tokenCount : 0), 0);
  return tokens > 0 ? { [name]: tokens } : {};
}
