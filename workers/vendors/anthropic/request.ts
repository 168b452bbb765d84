import { createHash } from 'node:crypto';
import type { ChatRequest } from '../../../shared/capabilities/chat.ts';
import { parseExact, stringifyExact } from '../../../shared/capabilities/exact-json.ts';
import { anthropicChatFields } from '../../../shared/vendors/anthropic.ts';
import { type AnthropicModelTraits, anthropicModelTraits } from '../../../shared/vendors/anthropic-models.ts';
import { givenChatFields, supportOf } from '../../../shared/vendors/field-support.ts';
import { requestText } from '../request-body.ts';
import { isObject, type JsonObject } from '../support/json-object.ts';
import { unsupportedField } from '../support/unsupported-field.ts';
import type { VendorCall } from '../vendor.ts';
import { type CountedFields, withCacheBreakpoints } from './cache-breakpoints.ts';
import { toAnthropicSchema } from './schema.ts';
import { isThinking, toAnthropicThinking } from './thinking.ts';
import { mustCall, toAnthropicTools } from './tools.ts';
import { followsThoughtlessCalls, toAnthropicConversation } from './turns.ts';

type Call = Pick<VendorCall, 'model' | 'request'>;

/**
 * A chat as the JSON text of a request for a message (https://docs.anthropic.com/en/api/messages);
 * shared/catalogue/anthropic-chat-fields lists the support of each field. Anthropic requires a maximum of output tokens; without
 * one in the chat it is the model's. Breakpoints of the prompt cache are added if the call wants it, which it does only where its caller set none.
 * @throws ApiError 400 naming the field that Anthropic does not support.
 */
export function toMessageRequest({
  model,
  stream,
  request,
  addsCacheBreakpoints,
}: Call & Pick<VendorCall, 'stream' | 'addsCacheBreakpoints'>): string {
  const chat = parseExact(requestText(request)) as ChatRequest;
  const traits = anthropicModelTraits(model);
  const { counted, thinks } = toCounted(chat, traits);
  return stringifyExact({
    model,
    max_tokens: maxTokens(chat, traits),
    ...(stream && { stream: true }),
    ...(addsCacheBreakpoints ? withCacheBreakpoints(counted) : counted),
    ...anthropicSampling(chat, traits, thinks),
    ...otherParameters(chat),
    ...passedOn(chat),
  });
}

/** What Anthropic takes only with the name of its beta (https://platform.claude.com/docs/en/api/beta-headers). */
const betas: readonly (readonly [part: string, beta: string])[] = [
  ['"task_budget":', 'task-budgets-2026-03-13'],
  ['"display":"updates"', 'thinking-display-updates-2026-08-18'],
  ['"block_binding":', 'thinking-binding-controls-2026-08-01'],
];

/**
 * The headers that a request needs beside those of every call. The names are looked for anywhere in it: a beta too many, for a tool
 * with a parameter of such a name, changes nothing.
 * @param body as of `toMessageRequest` or `toCountRequest`
 */
export function betaHeaders(body: string): { readonly headers?: Readonly<Record<string, string>> } {
  const needed = betas.filter(([part]) => body.includes(part)).map(([, beta]) => beta);
  return needed.length === 0 ? {} : { headers: { 'anthropic-beta': needed.join(',') } };
}

/**
 * The part of a chat that counts as input, as a request for its count of tokens
 * (https://docs.anthropic.com/en/api/messages-count-tokens).
 * @throws ApiError 400 naming the field that Anthropic does not support.
 */
export function toCountRequest({ model, request }: Call): string {
  const chat = parseExact(requestText(request)) as ChatRequest;
  return stringifyExact({ model, ...toCounted(chat, anthropicModelTraits(model)).counted });
}

function maxTokens(chat: ChatRequest, traits: AnthropicModelTraits): number {
  return chat.max_completion_tokens ?? chat.max_tokens ?? traits.maxOutput;
}

function toCounted(chat: ChatRequest, traits: AnthropicModelTraits): { counted: CountedFields; thinks: boolean } {
  const { system, messages } = toAnthropicConversation(chat, traits);
  const thinking = toAnthropicThinking(chat, traits, {
    maxTokens: maxTokens(chat, traits),
    followsThoughtlessCalls: followsThoughtlessCalls(messages),
    mustCall: mustCall(chat),
  });
  const config: JsonObject = { ...(isObject(chat.output_config) && chat.output_config), ...jsonFormat(chat) };
  if (thinking.effort !== undefined) config.effort = thinking.effort;
  const counted = {
    ...(system.length > 0 && { system }),
    ...toAnthropicTools(chat),
    messages,
    ...(thinking.thinking !== undefined && { thinking: thinking.thinking }),
    ...(Object.keys(config).length > 0 && { output_config: config }),
    ...(chat.cache_control != null && { cache_control: chat.cache_control }),
  };
  return { counted, thinks: isThinking(thinking) };
}

/** Structured outputs (https://platform.claude.com/docs/en/build-with-claude/structured-outputs) are by schema only. */
function jsonFormat(chat: ChatRequest): JsonObject {
  const schema = describedSchema(jsonSchemaOf(chat) ?? {});
  return schema === undefined ? {} : { format: { type: 'json_schema', schema: toAnthropicSchema(schema) } };
}

/** A format's schema with the format's description, for vendors that have no other place for it. */
export function describedSchema({
  schema,
  description,
}: Pick<JsonSchemaFormat, 'schema' | 'description'>): JsonSchemaFormat['schema'] {
  return schema === undefined || description === undefined ? schema : { description, ...schema };
}

type JsonSchemaFormat = Extract<ChatRequest['response_format'], { type: 'json_schema' }>['json_schema'];

/**
 * The schema of the answer, for vendors that support no other format of JSON; undefined for text, and for JSON without a schema,
 * which is asked for in words.
 * @throws ApiError 400 for the format of a schema without one.
 */
export function jsonSchemaOf({ response_format: format }: ChatRequest): JsonSchemaFormat | undefined {
  switch (format?.type) {
    case undefined:
    case 'text':
    case 'json_object':
      return undefined;
    case 'json_schema':
      if (format.json_schema.schema === undefined) {
        throw unsupportedField('response_format.json_schema', "it needs a 'schema'");
      }
      return format.json_schema;
  }
}

/**
 * `temperature`, `top_p` and `top_k` as Anthropic's models take them. The defaults, which every model accepts, are not sent; a
 * temperature over 1, the maximum, is 1, as in Anthropic's own layer for OpenAI's clients
 * (https://platform.claude.com/docs/en/api/openai-sdk). Beside a temperature, `top_p` is left out for models that refuse both.
 * @throws ApiError 400 for values that the model does not accept.
 */
export function anthropicSampling(chat: ChatRequest, { samples }: AnthropicModelTraits, thinks: boolean): JsonObject {
  const { temperature, top_p: topP, top_k: topK } = chat;
  const sent: JsonObject = {};
  if (temperature != null && temperature < 1) {
    if (thinks) throw unsupportedField('temperature', 'while it thinks the model takes only its default, 1');
    sent.temperature = temperature;
  }
  const isTaken = samples !== 'by_one' || sent.temperature === undefined;
  if (topP != null && topP !== 1 && isTaken) sent.top_p = topP;
  if (topK != null) sent.top_k = topK;
  const [refused] = samples === 'by_defaults' ? Object.keys(sent) : [];
  if (refused !== undefined) throw unsupportedField(refused, onlyDefault(refused));
  return sent;
}

/** Names the ways out: several frameworks set a temperature of their own with every request, which their users have not chosen. */
function onlyDefault(field: string): string {
  const given = field === 'top_k' ? 'its default' : 'its default, 1';
  return `the model takes only ${given}. Leave it out, or use an API key with 'unsupported_parameters' set to 'drop'`;
}

/** The texts that end an answer, without empty ones, which end nothing and which vendors refuse; undefined if there are none. */
export function stopTexts({ stop }: Pick<ChatRequest, 'stop'>): readonly string[] | undefined {
  const texts = (typeof stop === 'string' ? [stop] : (stop ?? [])).filter((text) => text !== '');
  return texts.length > 0 ? texts : undefined;
}

/** The same for Anthropic's models. @throws ApiError 400 for white space alone, which they do not take. */
export function anthropicStops(chat: Pick<ChatRequest, 'stop'>): readonly string[] | undefined {
  const texts = stopTexts(chat);
  if (texts?.some((text) => text.trim() === '')) {
    throw unsupportedField('stop', 'the model takes no text of white space alone');
  }
  return texts;
}

function otherParameters(chat: ChatRequest): JsonObject {
  const { user, safety_identifier: identifier, service_tier: tier } = chat;
  const stops = anthropicStops(chat);
  const id = user ?? identifier;
  return {
    ...(stops !== undefined && { stop_sequences: stops }),
    ...(id != null && { metadata: { user_id: toUserId(id) } }),
    // Every other tier is Anthropic's default: priority if the operator has any.
    ...(tier === 'default' && { service_tier: 'standard_only' }),
  };
}

/** Texts that Anthropic refuses as an id: addresses of mail, numbers of phones, and what is too long. */
const noUserId = /@|^\+?[\d\s().-]{7,}$|^.{257}/s;

/** The id of a caller's user, by its SHA-256 if Anthropic would refuse it. */
function toUserId(id: string): string {
  return noUserId.test(id) ? createHash('sha256').update(id).digest('hex') : id;
}

/**
 * The fields that the gateway does not know.
 * @throws ApiError for a field that Anthropic does not support, and that would change the answer.
 */
function passedOn(chat: ChatRequest): JsonObject {
  const kept: JsonObject = {};
  for (const name of givenChatFields(chat)) {
    if (supportOf(anthropicChatFields, name) === 'rejected') {
      throw unsupportedField(name, "the model's vendor has nothing like it");
    }
    if (!Object.hasOwn(anthropicChatFields, name.split('.', 1)[0] as string)) kept[name] = chat[name];
  }
  return kept;
}
