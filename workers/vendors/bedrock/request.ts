import type { ChatRequest } from '../../../shared/capabilities/chat.ts';
import { parseExact, stringifyExact } from '../../../shared/capabilities/exact-json.ts';
import { tierName } from '../../../shared/money/service-tier.ts';
import { anthropicModelTraits } from '../../../shared/vendors/anthropic-models.ts';
import { bedrockChatFields } from '../../../shared/vendors/bedrock.ts';
import { type BedrockModelFamily, bedrockModelFamily } from '../../../shared/vendors/bedrock-models.ts';
import { anthropicSampling, anthropicStops, jsonSchemaOf, stopTexts } from '../anthropic/request.ts';
import { toAnthropicSchema } from '../anthropic/schema.ts';
import { requestText } from '../request-body.ts';
import type { InlineMedia } from '../support/inline-media.ts';
import { isObject, type JsonObject } from '../support/json-object.ts';
import { refuseFields, unsupportedField } from '../support/unsupported-field.ts';
import type { VendorCall } from '../vendor.ts';
import { addsCachePoints, withCachePoints } from './cache-points.ts';
import { type ConverseReasoning, toConverseReasoning } from './reasoning.ts';
import { toConverseTools } from './tools.ts';
import { toConverseConversation } from './turns.ts';

/** The path of a model, an inference profile or an ARN: `/model/amazon.nova-lite-v1%3A0/converse`. */
export function conversePath({ model, stream }: Pick<VendorCall, 'model' | 'stream'>): string {
  return `/model/${encodeURIComponent(model)}/${stream ? 'converse-stream' : 'converse'}`;
}

/**
 * A chat as the JSON text of a request to Converse
 * (https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html); shared/catalogue/bedrock-chat-fields lists
 * the support of each field. Fields of the model that Converse lacks go into `additionalModelRequestFields`. Cache points are
 * added if the call wants them, which it does only where its caller set none, and if the model takes them.
 * @throws ApiError 400 naming the field that Converse, or the model, does not support.
 */
export async function toConverseRequest(
  call: Pick<VendorCall, 'model' | 'request' | 'addsCacheBreakpoints' | 'hasCachePrices'>,
  media: InlineMedia,
): Promise<string> {
  const { model, request } = call;
  const chat = parseExact(requestText(request)) as ChatRequest;
  refuseFields(bedrockChatFields, chat);
  const family = bedrockModelFamily(model);
  const { toolConfig: tools, additional: toolFields } = toConverseTools(chat, { model, family });
  const hasTools = tools !== undefined;
  const conversation = await toConverseConversation(chat, { family, hasTools }, media);
  const { followsThoughtlessCalls } = conversation;
  const given = { ...conversation, toolConfig: tools };
  const { system, messages, toolConfig } = addsCachePoints(call, family) ? withCachePoints(given) : given;
  const reasoning = toConverseReasoning(chat, { model, family }, followsThoughtlessCalls);
  const { inferenceConfig, additional: samplingFields } = toInference(chat, { model, family }, reasoning);
  const additional = { ...samplingFields, ...reasoning.additional, ...toolFields, ...ownFields(chat) };
  return stringifyExact({
    ...(system.length > 0 && { system }),
    messages,
    ...nonEmpty('inferenceConfig', inferenceConfig),
    ...(toolConfig && { toolConfig }),
    ...nonEmpty('outputConfig', toOutputConfig(chat, reasoning)),
    ...nonEmpty('additionalModelRequestFields', additional),
    // Converse itself does not report at which sequence Claude stopped.
    ...(family === 'claude' &&
      inferenceConfig.stopSequences !== undefined && { additionalModelResponseFieldPaths: ['/stop_sequence'] }),
    ...toServiceTier(chat),
    ...(chat.guardrailConfig != null && { guardrailConfig: chat.guardrailConfig }),
    ...(chat.performanceConfig != null && { performanceConfig: chat.performanceConfig }),
  });
}

function nonEmpty(name: string, value: JsonObject): JsonObject {
  return Object.keys(value).length > 0 ? { [name]: value } : {};
}

/** Fields of the model that the caller names explicitly. */
function ownFields({ additionalModelRequestFields: own }: ChatRequest): JsonObject {
  return isObject(own) ? own : {};
}

/** https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_InferenceConfiguration.html */
function toInference(
  chat: ChatRequest,
  { model, family }: { readonly model: string; readonly family: BedrockModelFamily },
  { thinks, additional }: ConverseReasoning,
): { readonly inferenceConfig: JsonObject; readonly additional: JsonObject } {
  const traits = anthropicModelTraits(model);
  const sent = family === 'claude' ? anthropicSampling(chat, traits, thinks) : plainSampling(chat);
  const { temperature, top_p: topP, top_k: topK } = sent;
  const stops = family === 'claude' ? anthropicStops(chat) : stopTexts(chat);
  // A thinking budget must be below the maximum tokens, for which Converse does not document a default.
  const hasBudget = isObject(additional.thinking) && additional.thinking.type === 'enabled';
  const limit = chat.max_completion_tokens ?? chat.max_tokens ?? (hasBudget ? traits.maxOutput : undefined);
  return {
    inferenceConfig: {
      ...(limit != null && { maxTokens: limit }),
      ...(temperature !== undefined && { temperature }),
      ...(topP !== undefined && { topP }),
      ...(stops !== undefined && { stopSequences: stops }),
    },
    additional: topK === undefined ? {} : topKOf(topK, family),
  };
}

function plainSampling({ temperature, top_p: topP, top_k: topK }: ChatRequest): JsonObject {
  if (temperature != null && temperature > 1) throw unsupportedField('temperature', 'the model takes 0 to 1');
  return {
    ...(temperature != null && { temperature }),
    ...(topP != null && { top_p: topP }),
    ...(topK != null && { top_k: topK }),
  };
}

function topKOf(topK: unknown, family: BedrockModelFamily): JsonObject {
  switch (family) {
    case 'claude':
      return { top_k: topK };
    case 'nova':
    case 'nova-2':
      // https://docs.aws.amazon.com/nova/latest/userguide/complete-request-schema.html
      return { inferenceConfig: { topK } };
    default:
      throw unsupportedField('top_k', 'the model does not have it');
  }
}

/** Structured outputs (https://docs.aws.amazon.com/bedrock/latest/userguide/structured-output.html), and the effort. */
function toOutputConfig(chat: ChatRequest, { effort }: ConverseReasoning): JsonObject {
  const format = jsonSchemaOf(chat);
  const jsonSchema = format && {
    schema: stringifyExact(toAnthropicSchema(format.schema ?? {})),
    name: format.name,
    ...(format.description !== undefined && { description: format.description }),
  };
  return {
    ...(jsonSchema && { textFormat: { type: 'json_schema', structure: { jsonSchema } } }),
    ...(effort !== undefined && { effort }),
  };
}

/** https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ServiceTier.html. There is none for OpenAI's `auto`. */
function toServiceTier({ service_tier: tier }: Pick<ChatRequest, 'service_tier'>): JsonObject {
  return tier == null || tier === 'auto' ? {} : { serviceTier: { type: tierName(tier) ?? tier } };
}
