import type { ChatRequest } from '../../../shared/capabilities/chat.ts';
import { parseExact, stringifyExact } from '../../../shared/capabilities/exact-json.ts';
import { isStandardTier, tierName } from '../../../shared/money/service-tier.ts';
import { geminiChatFields } from '../../../shared/vendors/gemini.ts';
import type { Downloader } from '../../http/download.ts';
import { describedSchema, stopTexts } from '../anthropic/request.ts';
import { requestText } from '../request-body.ts';
import { DefinitionsRoom, withLoneReferences } from '../schema-references.ts';
import type { JsonObject } from '../support/json-object.ts';
import { refuseFields, unsupportedField } from '../support/unsupported-field.ts';
import type { VendorCall } from '../vendor.ts';
import { toGeminiContents } from './contents.ts';
import { GeminiMedia } from './media.ts';
import { thinkingConfig } from './thinking.ts';
import { toGeminiTools } from './tools.ts';

/** Candidates of one answer: Gemini's limit. */
const maxCandidates = 8;

/** The path of a model on Gemini's wire: `/models/gemini-3.8-flash:generateContent`. */
export function modelPath(model: string, method: string): string {
  return `/models/${encodeURIComponent(model)}:${method}`;
}

/**
 * The body of `generateContent` (https://ai.google.dev/api/generate-content) for a chat request.
 * @throws ApiError 400 naming the field that Gemini does not support.
 */
export async function toGeminiRequest(
  request: ChatRequest,
  call: VendorCall,
  download: Downloader,
): Promise<JsonObject> {
  refuseFields(geminiChatFields, request);
  const generationConfig = toGenerationConfig(request, call.model);
  return {
    ...(await toGeminiInput(request, call, download)),
    ...(Object.keys(generationConfig).length > 0 && { generationConfig }),
    ...toServiceTier(request),
  };
}

/** https://ai.google.dev/gemini-api/docs/optimization, "Inference service tiers". There is none for OpenAI's `auto`. */
function toServiceTier({ service_tier: tier }: Pick<ChatRequest, 'service_tier'>): JsonObject {
  if (tier === undefined || tier === 'auto') return {};
  return { serviceTier: isStandardTier(tier) ? 'standard' : (tierName(tier) ?? tier) };
}

/** The request of a chat; null fields are omitted. */
export function readChatRequest({ request }: Pick<VendorCall, 'request'>): ChatRequest {
  const fields = Object.entries(parseExact(requestText(request)) as ChatRequest).filter(([, value]) => value !== null);
  return Object.fromEntries(fields) as ChatRequest;
}

/** The part of the body that counts as input. */
export async function toGeminiInput(
  request: Pick<ChatRequest, 'messages' | 'tools' | 'tool_choice'>,
  call: VendorCall,
  download: Downloader,
): Promise<JsonObject> {
  const tools = toGeminiTools(request);
  return { ...(await toGeminiContents(request.messages, call.model, new GeminiMedia(call, download))), ...tools };
}

function toGenerationConfig(request: ChatRequest, model: string): JsonObject {
  const { n, logprobs, presence_penalty: presence, frequency_penalty: frequency } = request;
  if (n != null && n > maxCandidates) {
    throw unsupportedField('n', `the model's vendor makes at most ${maxCandidates} choices`);
  }
  const config: JsonObject = {
    maxOutputTokens: request.max_completion_tokens ?? request.max_tokens,
    temperature: request.temperature,
    topP: request.top_p,
    topK: request.top_k,
    seed: toSeed(request.seed),
    stopSequences: stopTexts(request),
    // Several models refuse these even with the value 0.
    presencePenalty: presence === 0 ? undefined : presence,
    frequencyPenalty: frequency === 0 ? undefined : frequency,
    candidateCount: n === 1 ? undefined : n,
    ...(logprobs === true && { responseLogprobs: true, logprobs: request.top_logprobs || undefined }),
    ...toResponseFormat(request.response_format),
    thinkingConfig: thinkingConfig(model, request.reasoning_effort),
  };
  return Object.fromEntries(Object.entries(config).filter(([, value]) => value != null));
}

/** Gemini's seed has 32 bits. Of a longer one the lowest count: equal seeds stay equal. */
function toSeed(seed: number | null | undefined): number | undefined {
  if (seed == null) return undefined;
  return Number(BigInt.asIntN(32, BigInt(typeof seed === 'number' ? seed : stringifyExact(seed))));
}

function toResponseFormat(format: ChatRequest['response_format']): JsonObject {
  switch (format?.type) {
    case 'json_object':
      return { responseMimeType: 'application/json' };
    case 'json_schema': {
      const schema = describedSchema(format.json_schema);
      return {
        responseMimeType: 'application/json',
        responseJsonSchema: schema && withLoneReferences(schema, new DefinitionsRoom()),
      };
    }
    default:
      return {};
  }
}
